"""The pages as slides, of which the page for teachers speaks."""


def test_keys_go_through_the_sections_of_a_core_and_back(open_page):
    page = open_page("book/04_masks")
    sections = page.locator("article section > section > h2").all_inner_texts()
    core = sections[: [s.startswith("Code and checks") for s in sections].index(True)]
    page.goto(page.url + "?slides")
    page.reload()  # the theme has written `?slides=` in the address
    shown = page.locator("article h2:visible")
    assert page.locator("article h1").is_visible() and shown.count() == 0
    for heading in core:
        page.keyboard.press("ArrowRight")
        assert shown.all_inner_texts() == [heading]
    page.keyboard.press("PageUp")
    assert shown.all_inner_texts() == [core[-2]]
    page.keyboard.press("Escape")
    page.wait_for_function("!document.documentElement.classList.contains('slides')")
