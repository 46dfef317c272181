"""Windows of the browser, used again: a new one costs more than most tests do."""

EMPTY = "about:blank"
FORGET = "try { localStorage.clear(); sessionStorage.clear() } catch { /* none */ }"


class Windows:
    """The windows of one browser. What a test did in one, the next does not see.

    Those with other options, for example without scripts or for fingers, are kept
    apart, because an open window cannot change these.
    """

    def __init__(self, browser):
        self.browser, self.free, self.options, self.heard = browser, {}, {}, {}

    def take(
        self,
        *,
        theme="light",
        width=1280,
        reduced_motion="no-preference",
        forced_colors="none",
        **options,
    ):
        """Return an empty window."""
        free = self.free.setdefault(str(options), [])
        page = free.pop() if free else self.browser.new_context(**options).new_page()
        self.options[page], self.heard[page] = options, []
        page.bring_to_front()
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(
            media="screen",
            color_scheme=theme,
            reduced_motion=reduced_motion,
            forced_colors=forced_colors,
        )
        return page

    def listen(self, page, event, handler):
        """Call a handler until the window is given back."""
        page.on(event, handler)
        self.heard[page].append((event, handler))

    def give_back(self, page):
        """Empty a window for the next test, or close one that would remember."""
        options = self.options.pop(page)
        for event, handler in self.heard.pop(page):
            page.remove_listener(event, handler)
        if len(page.context.pages) != 1:
            page.context.close()
            return
        if options.get("java_script_enabled", True):
            page.evaluate(FORGET)
        page.unroute_all()
        page.context.clear_cookies()
        page.context.clear_permissions()
        page.goto(EMPTY)
        self.free[str(options)].append(page)
