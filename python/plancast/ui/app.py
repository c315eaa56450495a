"""The page as a Dash application."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from plancast.errors import InputError
from plancast.report.page.frame import asset, csv_text
from plancast.report.page.predict import cards, forecast_page
from plancast.ui import figures, layout
from plancast.ui.choices import SLIDERS, Choice, Desk, nearest_step, steps

if TYPE_CHECKING:
    from plancast.forecast import Forecast

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{%title%}</title>
<link rel="icon" href="data:,">
{%css%}
<style>STYLE</style>
</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""
# Light or dark, and whether the page is narrow.
_THEME = """function(_) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 600px)");
  const name = () => (dark.matches ? "dark" : "light") + (narrow.matches ? " narrow" : "");
  dark.onchange = narrow.onchange = () => dash_clientside.set_props("theme", {data: name()});
  return name();
}"""
_REST = ("zero", "recompute", "sp", "more", "dtype", "profile", "seq")
_PINNED = ("", "of", "strategy", "iteration", "GiB", "fits", "MFU", "against A")


def check_library() -> None:
    """Raises InputError where what the page stands on is not installed."""
    missing = [name for name in ("dash", "plotly") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"the page needs {' and '.join(missing)}. Run `pip install 'plancast[ui]'`."
        )


def make_app(desk: Desk, first: Choice) -> Any:
    """The application; its WSGI server is `app.server`."""
    check_library()
    from dash import Dash

    style = asset("page.css") + asset("ui.css")
    app = Dash(
        "plancast",
        title="Plancast",
        update_title="Plancast",
        index_string=_PAGE.replace("STYLE", style),
        serve_locally=True,
        include_assets_files=False,
    )
    app.layout = layout.page(desk, first)
    _guard(app.server)
    _controls(app, desk, first)
    _answers(app, desk)
    _pins(app, desk)
    return app


def _guard(server: Any) -> None:
    """Answers only who asks for this machine by its own name: no page from elsewhere does."""
    from flask import abort, request

    @server.before_request  # type: ignore[untyped-decorator]
    def check() -> None:
        name = request.host.rpartition(":")[0] or request.host
        origin = request.headers.get("Origin")
        if name not in ("127.0.0.1", "localhost") or origin not in (
            None,
            f"http://{request.host}",
        ):
            abort(403)


def _controls(app: Any, desk: Desk, first: Choice) -> None:
    from dash import Input, Output, State

    app.clientside_callback(_THEME, Output("theme", "data"), Input("heading", "id"))
    wanted = dict(first.degrees)

    @app.callback(  # type: ignore[untyped-decorator]
        output=(
            Output("steps", "data"),
            [Output(key, prop) for key in SLIDERS for prop in ("max", "marks", "value")],
            [Output(f"around-{key}", "hidden") for key in SLIDERS],
        ),
        inputs={key: Input(key, "value") for key in ("model", "machine", "hosts", "batch")},
        state={
            "before": State("steps", "data"),
            "at": [State(key, "value") for key in SLIDERS],
        },
    )
    def offer(
        model: str, machine: str, hosts: int, batch: int, before: Any, at: Sequence[int]
    ) -> Any:
        try:
            offered = steps(desk.model(model, None), desk.machine(machine, hosts or 1), batch or 1)
        except InputError:
            offered = {key: [1] for key in SLIDERS}
        now = (
            {key: before[key][place] for key, place in zip(SLIDERS, at, strict=True)}
            if before
            else wanted
        )
        sliders: list[Any] = []
        for key in SLIDERS:
            row = offered[key]
            marks = {
                str(i): str(n)
                for i, n in enumerate(row)
                if len(row) <= 8 or i in (0, len(row) - 1) or i % (len(row) // 4) == 0
            }
            sliders += [max(1, len(row) - 1), marks, nearest_step(row, now.get(key, 1))]
        return offered, sliders, [len(offered[key]) < 2 for key in SLIDERS]

    @app.callback(  # type: ignore[untyped-decorator]
        output=(
            Output("choice", "data"),
            [Output(f"said-{key}", "children") for key in SLIDERS],
        ),
        inputs={
            "offered": Input("steps", "data"),
            "at": [Input(key, "value") for key in SLIDERS],
            "rest": {key: Input(key, "value") for key in _REST},
        },
        state={
            "what": {key: State(key, "value") for key in ("model", "machine", "hosts", "batch")},
        },
    )
    def choose(offered: Any, at: Sequence[int], rest: dict[str, Any], what: dict[str, Any]) -> Any:
        degrees = [
            (key, offered[key][min(place or 0, len(offered[key]) - 1)])
            for key, place in zip(SLIDERS, at, strict=True)
        ]
        said = {
            **what,
            "hosts": what["hosts"] or 1,
            "batch": what["batch"] or 1,
            "degrees": degrees,
            **{key: rest[key] or "" for key in ("zero", "recompute", "more")},
            **{key: rest[key] for key in ("dtype", "profile", "seq")},
            "sp": bool(rest["sp"]),
        }
        return said, [str(n) for _, n in degrees]


def choice_of(said: dict[str, Any] | None) -> Choice:
    """What a browser sends back; nothing is updated before it has chosen."""
    if said is None:
        from dash.exceptions import PreventUpdate

        raise PreventUpdate
    return Choice(**{**said, "degrees": tuple((key, int(n)) for key, n in said["degrees"])})


def _answers(app: Any, desk: Desk) -> None:
    from dash import Input, Output, html, no_update

    @app.callback(  # type: ignore[untyped-decorator]
        [
            Output("error", "children"),
            Output("error", "hidden"),
            Output("cards", "children"),
            Output("warnings", "children"),
            Output("heading", "children"),
            Output("devices", "children"),
            Output("times", "figure"),
            Output("memory", "figure"),
            Output("command", "children"),
        ],
        Input("choice", "data"),
        Input("pins", "data"),
        Input("theme", "data"),
    )
    def answer(said: dict[str, Any], pins: list[dict[str, Any]], theme: str) -> Any:
        choice = choice_of(said)
        try:
            forecast = desk.forecast(choice)
        except InputError as error:
            return [str(error), False, *[no_update] * 7]
        forecasts = [*_pinned(desk, pins), forecast]
        names = [*(figures.letter(at) for at in range(len(forecasts) - 1)), "now"]
        shown = [
            html.Div(
                [html.Span(card.label), html.B(card.value), html.Small(card.more)],
                className=f"card {card.tone}",
            )
            for card in cards(forecast)
        ]
        warnings = [html.P(_coded(text), className="warning") for text in _warnings(forecast)]
        return [
            "",
            True,
            shown,
            warnings,
            f"{forecast.model} on {forecast.machine}: {forecast.strategy}",
            f"{forecast.devices:,} GPUs, dp {forecast.chosen.get('dp', '1')}",
            figures.themed(figures.times(names, forecasts), theme),
            figures.themed(figures.memories(forecast), theme),
            choice.command(),
        ]

    @app.callback(  # type: ignore[untyped-decorator]
        Output("pipeline", "figure"), Input("choice", "data"), Input("theme", "data")
    )
    def draw(said: dict[str, Any], theme: str) -> Any:
        try:
            forecast = desk.forecast(choice_of(said))
        except InputError as error:
            return figures.themed(figures.words(str(error)), theme)
        return figures.themed(figures.pipeline(forecast), theme)


def _coded(text: str) -> list[Any]:
    """A sentence whose words between backticks are to be typed."""
    from dash import html

    pieces = enumerate(text.split("`"))
    return [html.Code(piece) if at % 2 else piece for at, piece in pieces if piece]


def _warnings(forecast: Forecast) -> list[str]:
    """Without advice on what would fit, which takes as long as several forecasts."""
    return list(forecast.warnings)


def _pinned(desk: Desk, pins: Sequence[dict[str, Any]]) -> list[Forecast]:
    return [desk.forecast(choice_of(said)) for said in pins]


def _pins(app: Any, desk: Desk) -> None:
    from dash import Input, Output, State, ctx, html, no_update

    @app.callback(  # type: ignore[untyped-decorator]
        Output("pins", "data"),
        Output("pinned", "children"),
        Input("pin", "n_clicks"),
        Input("forget", "n_clicks"),
        State("choice", "data"),
        State("pins", "data"),
        prevent_initial_call=True,
    )
    def pin(_: int, __: int, said: dict[str, Any], pins: list[dict[str, Any]]) -> Any:
        if ctx.triggered_id == "forget":
            return [], []
        try:
            desk.forecast(choice_of(said))
        except InputError:
            return no_update, no_update
        kept = [*[one for one in pins if one != said], said]
        rows = figures.pinned_rows(_pinned(desk, kept))
        head = html.Tr([html.Th(name) for name in _PINNED])
        body = [html.Tr([html.Td(cell) for cell in row]) for row in rows]
        table = html.Table([html.Thead(head), html.Tbody(body)])
        return kept, html.Div(table, className="scroll")

    @app.callback(  # type: ignore[untyped-decorator]
        Output("saved", "data"),
        Input("report", "n_clicks"),
        Input("csv", "n_clicks"),
        Input("json", "n_clicks"),
        State("choice", "data"),
        State("pins", "data"),
        prevent_initial_call=True,
    )
    def save(_: int, __: int, ___: int, said: dict[str, Any], pins: list[dict[str, Any]]) -> Any:
        choice = choice_of(said)
        try:
            if ctx.triggered_id == "report":
                page = forecast_page(desk.forecast(choice), choice.command())
                return {"content": page.render(), "filename": "plancast.html"}
            chosen = [choice_of(one) for one in pins] or [choice]
            forecasts = [desk.forecast(one) for one in chosen]
        except InputError:
            return no_update
        if ctx.triggered_id == "csv":
            rows = [
                [*asdict(replace(one, degrees=())).values()][:7] + row[2:]
                for one, row in zip(chosen, figures.pinned_rows(forecasts), strict=True)
            ]
            columns = ["model", "machine", "hosts", "batch", "seq", "dtype", "profile"]
            text = csv_text([*columns, *_PINNED[2:]], rows)
            return {"content": text, "filename": "plans.csv"}
        plans = [{"strategy": f.strategy, **f.to_dict()} for f in forecasts]
        return {"content": json.dumps(plans, indent=1), "filename": "plans.json"}
