"""The live house: every number explains itself, can be changed, and breaks laws."""

import re
from functools import cache

import pytest

pytest.importorskip("matplotlib")

import figures
from tests.browser.looks import SIDEWAYS, barriers
from tests.browser.test_figures import PAGE

PRESS = """(key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true }))"""
SAID = """all => all.map((cell) => [
    cell.focus(), cell.ariaLabel, document.querySelector(".readout").innerText])"""
FAST = 5  # milliseconds of script that an interaction takes


class House:
    """A house on a page, and what a reader sees and does there."""

    def __init__(self, page):
        self.page, self.root = page, page.locator(".mha-house")

    def cell(self, name, i, j):
        return self.root.locator(f'[data-id="{name}"][data-i="{i}"][data-j="{j}"]')

    def text(self, name, i, j):
        return self.cell(name, i, j).locator("text").text_content()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def lit(self, kind="src"):
        cells = self.root.locator(f".{kind}")
        return cells.evaluate_all(
            "all => all.map(({dataset: d}) => `${d.id} ${d.i} ${d.j}`)"
        )

    def broken(self):
        return self.root.locator(".court .broken span:first-of-type").all_inner_texts()

    def choose(self, label, option):
        self.root.get_by_label(label).select_option(label=option)

    @property
    def says(self):
        return self.root.locator(".readout").inner_text()

    @property
    def told(self):
        return self.root.locator(".told").inner_text()


@cache
def html_of(part="whole"):
    return figures.house(part)._repr_html_()


@pytest.fixture
def show(window):
    """Return a function that shows a part; in the end no script has failed."""
    wrong = []

    def show_part(part="whole", **options):
        page = window(**options)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.set_content(PAGE.format("", html_of(part)))
        if options.get("java_script_enabled", True):
            page.wait_for_selector(".cells [role=gridcell]")
        return House(page)

    yield show_part
    assert wrong == []


def test_a_number_says_what_it_is_made_from_to_eyes_and_to_a_screen_reader(show):
    house = show("attention")
    house.cell("S", 2, 0).hover()
    assert house.says == "Score of “it” with “dog” = 2·2 + 1·1 = 5."
    assert sorted(house.lit()) == ["Kt 0 0", "Kt 1 0", "Q2 2 0", "Q2 2 1"]
    assert house.root.locator(".readout").get_attribute("aria-live") == "polite"
    assert house.cell("S", 2, 0).get_attribute("aria-label").endswith(": 5")
    house.cell("A", 2, 0).hover()
    assert house.says.startswith("Weight that “it” gives to “dog” = e3.536 / (34.3 + ")


@pytest.mark.parametrize("part", ["attention", "mask", "multi_head", "laws"])
def test_every_number_explains_itself_where_its_sources_are_not_in_sight(part, show):
    cells = show(part, width=390).root.locator("[role=gridcell]")
    for _, name, said in cells.evaluate_all(SAID):
        start = name.partition(": ")[0].replace("_", "")
        assert said.lower().startswith(start.lower()), name


def test_a_number_is_changed_by_keys_and_by_buttons_and_escape_takes_it_back(show):
    house = show("attention")
    house.cell("X", 2, 1).focus()
    house.press("+")
    assert (house.text("X", 2, 1), house.text("Q", 2, 1)) == ("2", "2")
    house.press("3", "Escape")
    assert house.text("X", 2, 1) == "2"
    house.press("7", "-", "Enter", "ArrowRight")
    assert house.text("X", 2, 1) == "−7" and house.lit("here") == ["X 2 2"]
    house.root.get_by_role("button", name="one more").click()
    assert house.text("X", 2, 2) == "2" and house.text("Q", 2, 0) == "4"
    house.root.get_by_role("button", name="back to the start").click()
    assert [house.text("X", 2, j) for j in range(4)] == ["1", "1", "1", "0"]


def test_a_computed_number_says_that_it_cannot_be_changed(show):
    house = show("attention")
    house.cell("A", 2, 0).focus()
    house.press("7")
    assert house.says.startswith("This number is computed,")
    assert house.text("A", 2, 0) == ".57"


TASKS = {  # of each part: where to go, and what to press there
    "scores": [("Kt", 1, 1, "5")],
    "softmax": [("S", 2, 3, "+")],
    "scale": [("S", 0, 0, ["Shift+Tab", "Shift+Tab", " "])],
    "attention": [("X", 2, 2, "0")],
    "mask": [("mask", i, j, " ") for i in range(3) for j in range(i + 1, 4)],
    "output": [("W_O", 2, 2, "1")],
}


@pytest.mark.parametrize("part", TASKS)
def test_the_task_of_a_part_is_reached_with_the_keys(part, show):
    house = show(part)
    aim = house.root.locator(".aim")
    for place in TASKS[part]:
        assert "Done" not in aim.inner_text()
        house.cell(*place[:3]).focus()
        house.press(*place[3])
    assert "Done" in aim.inner_text()


def test_chapter_9_ends_in_powers_of_two(show):
    house = show("multi_head")
    house.cell("Y", 2, 1).hover()
    assert house.says.endswith("= 1.375·0 + 1.125·(−1) + 1.125·1 + 0.5·0 = 0.")
    house.cell("A", 2, 0).hover()
    assert house.says.endswith(" = e4.901/√2 / (32 + 8 + 8 + 16) = 0.5.")


def test_mask_scale_and_head_are_changed_and_explained(show):
    house = show()
    house.root.get_by_role("button", name="all steps").click()
    house.cell("mask", 2, 0).click()
    assert house.cell("M", 2, 0).get_attribute("aria-label").endswith("hidden")
    assert house.cell("A", 2, 0).get_attribute("class").strip() == "hidden"
    house.root.get_by_role("button", name="divide by √d").click()
    house.cell("T", 2, 0).hover()
    assert house.says.endswith("= 5, not divided.")
    house.root.get_by_role("radio", name="2", exact=True).check()
    house.cell("S", 2, 1).hover()
    assert house.says.endswith("“food” = 1·2 + 1·1 = 3.")


def test_a_walk_shows_one_step_at_a_time(show):
    house = show()
    assert house.text("S", 2, 0) == "" and house.text("X", 0, 0) == "2"
    for _ in range(4):
        house.root.get_by_role("button", name="next step").click()
    assert house.told.startswith("5. mask:") and house.text("M", 2, 0) == "3.54"
    assert house.text("A", 2, 0) == ""
    house.cell("X", 2, 0).hover()
    assert house.told.startswith("1. words:")  # of the number that is asked, not of ▶


def test_the_buttons_of_a_walk_stay_in_sight(show):
    house = show()
    house.page.emulate_media(reduced_motion="reduce")
    button = house.root.get_by_role("button", name="next step")
    for _ in range(11):
        button.click()
        box = button.bounding_box()
        assert 0 <= box["y"] <= 900 - box["height"]
    assert house.cell("N", 2, 0).bounding_box()["y"] < box["y"]


def test_a_wrong_version_breaks_laws_by_numbers_and_marks_on_request(show):
    house = show()
    house.choose("Break it", "softmax down the columns")
    assert house.says.endswith("down the column. Correct would be 0.566.")
    assert house.lit() == [f"M {i} 0" for i in range(4)]
    assert any("every row of weights sums to one" in law for law in house.broken())
    assert "its weights sum to 0.497" in house.broken()[0]
    assert house.lit("off") == []
    house.root.get_by_role("button", name="mark wrong numbers").click()
    assert "A 2 0" in house.lit("off") and "S 2 0" not in house.lit("off")


def test_a_mystery_is_found_by_the_laws_alone(show):
    house = show()
    house.page.evaluate("Math.random = () => 0.99")
    house.choose("Break it", "a mystery bug: one of the above")
    assert len(house.broken()) > 0 and house.lit("off") == []
    house.cell("Z", 2, 0).hover()
    assert "stays hidden" in house.says and house.lit() == []
    assert "The mask now hides later words." in house.told
    assert house.root.get_by_role("button", name="laws broken").is_visible()
    house.choose("What is broken?", "no scale")
    assert house.told.endswith("would hold, but here it is broken.")
    house.choose("What is broken?", "norm over the words")
    assert "Repair: Let the norm run along each row." in house.told
    assert len(house.lit("off")) > 0


def test_the_whole_can_be_used_with_the_keyboard_alone(show):
    house, seen = show(), []
    house.root.get_by_role("button", name="next step").focus()
    house.press(*["Enter"] * 11)
    for _ in range(30):  # back, over all that the walk has filled
        house.press("Shift+Tab")
        seen.insert(0, house.page.evaluate(
            "(document.activeElement.getAttribute('aria-label') "
            "|| document.activeElement.textContent).trim()"
        ))  # fmt: skip
    assert {"previous step", "back to the start"} <= set(seen)
    assert house.text("N", 2, 0) == "1.1"  # the walk has come to its end
    stops = [name for name in seen if re.search(r": [−\d.]+$|: yes$", name)]
    assert stops[0] == "animal of “dog”: 2" and len(stops) >= 15
    assert len({stop.split(",")[0] for stop in stops}) > 10


def test_a_script_takes_a_few_milliseconds(show):
    house = show()
    house.root.get_by_role("button", name="all steps").click()
    house.cell("X", 2, 1).focus()
    session = house.page.context.new_cdp_session(house.page)
    # seconds of the processor, which others who use the machine do not lengthen
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent():
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "ScriptDuration")

    def change(k):
        before = spent()
        house.page.evaluate(PRESS, "-" if k % 2 else "+")
        return 1000 * (spent() - before)

    times = [change(k) for k in range(61)]
    assert sorted(times)[30] < FAST  # the median


def test_axe_finds_no_barrier(show):
    house = show()
    house.choose("Break it", "inverted mask")
    house.root.get_by_role("button", name="mark wrong numbers").click()
    for theme, width in ("light", 1280), ("dark", 390):
        house.page.emulate_media(color_scheme=theme)
        house.page.set_viewport_size({"width": width, "height": 900})
        assert barriers(house.page) == []
        assert house.page.evaluate(SIDEWAYS) <= 0


@pytest.mark.parametrize("chapter", ["05_attention", "11_encoder_layer", "16_laws"])
def test_a_sheet_fits_one_screen_of_a_phone_and_stays_as_it_is_when_it_comes_alive(
    chapter, open_page
):
    page = open_page(f"book/{chapter}", width=390)
    house = page.locator(".mha-house")
    height = house.bounding_box()["height"]
    assert house.locator(".sheet").bounding_box()["height"] <= 844  # of a screen
    house.scroll_into_view_if_needed()
    page.wait_for_selector(".cells [role=gridcell]")
    assert house.bounding_box()["height"] == height


def test_without_scripts_there_is_the_still(show):
    house = show(java_script_enabled=False)
    assert house.root.locator(".still img").is_visible()
