"""The sections of a report, in the order in which they are read; those a run has nothing to say in are left out."""

from collections.abc import Iterator, Sequence

import numpy as np

from candor.core.text import NOTHING, amount, counted, duration, format_time, percent, significant, time_format
from candor.data.panel import Sensor
from candor.explain.overview import Overview
from candor.explain.scores import coverage_in_words, skill_in_words
from candor.render.figures.style import BRANCHES
from candor.render.html import Cell, cards, folded, heading, note, paragraphs, table
from candor.render.report import charts, maps
from candor.render.report.parts import Section, chart_place, sensor_choice
from candor.render.report.places import find_places

_MOST_OPEN_ROWS = 15  # longer tables are folded
_HEAVIEST = 10  # learned edges in the table
_LONGEST_LABEL = 22


def all_sections(overview: Overview) -> Iterator[Section]:
    """Yields the sections a run has something to say in."""
    yield _introduction(overview)
    if overview.scores is not None:
        yield _skill(overview)
    yield _forecast(overview)
    if overview.learned is not None:
        if overview.learned.components is not None:
            yield _components(overview)
        if len(overview.learned.fusion) > 1:
            yield _fusion(overview)
    yield _network(overview)
    if overview.learned is not None and any(len(edges.weight) for edges in overview.learned.edges.values()):
        yield _learned_edges(overview)
    if overview.scores is not None:
        yield _errors(overview)
        if overview.scores.intervals is not None:
            yield _coverage(overview)
    if overview.training is not None:
        yield _training(overview)
    yield _data(overview)
    yield _configuration(overview)


def _introduction(overview: Overview) -> Section:
    facts = [(f"{len(overview.panel.sensors):,}", "sensors"), (overview.ahead, "ahead")]
    scores = overview.scores
    if scores is not None:
        facts.append((amount(scores.overall["mae"], overview.unit), "mean absolute error"))
        known = {rule.name: rule.skill for rule in scores.rules if rule.skill is not None}
        if "last-value" in known:
            facts.append((f"{-100 * known['last-value']:+.1f} %", "error against last-value"))
        if scores.intervals is not None:
            asked = f"held by {100 * scores.intervals['asked_coverage']:g} % intervals"
            facts.append((percent(scores.intervals["overall"]["coverage"]), asked))
    return Section("trained", "What was trained on what", cards(facts) + "\n" + paragraphs(overview.introduction))


def _skill(overview: Overview) -> Section:
    scores, unit, model = overview.scores, overview.unit, overview.record.label
    assert scores is not None
    overall = scores.overall
    rows: list[Sequence[Cell]] = [
        ((model, "the model of this run"), significant(overall["mae"]), significant(overall["rmse"]), "")
    ]
    for rule in scores.rules:
        gain = NOTHING if rule.skill is None else f"{100 * rule.skill:+.1f} %"
        rows.append(((rule.name, rule.meaning), significant(rule.mae), significant(rule.rmse), gain))
    head = ("", *_in_brackets(unit, "MAE", "RMSE"), f"skill of {model}")
    body = [
        paragraphs(skill_in_words(scores, model, unit, overview.record.protocol.horizon)),
        table(head, rows),
        note("MAE: mean absolute error. RMSE: root mean square error, which large misses dominate. Skill: the share of "
             "the rule's MAE that the model avoids; 100 % is perfect, 0 % no better, below 0 % worse."),
    ]  # fmt: skip
    return Section("skill", "Skill against simple rules", "\n".join(body))


def _forecast(overview: Overview) -> Section:
    chart = charts.draw_outlook(overview.outlook, overview.shown)
    ahead, form = overview.outlook.ahead, f"%Y-%m-%d {time_format(overview.panel.times.interval)}"
    begin, end = (format_time(moment, form) for moment in (ahead.times[0], ahead.times[-1]))
    said = [f"The next forecast runs from {begin} to {end}; the one before it is shown beside what happened."]
    if ahead.lower is not None:
        said.append(f"Shaded: where {100 * overview.outlook.coverage:g} % of the readings are expected.")
    body = [_choice(overview, "forecast"), chart_place("forecast", chart), note(" ".join(said))]
    return Section("forecast", "Forecast of a sensor", "\n".join(body), {"forecast": chart})


def _components(overview: Overview) -> Section:
    learned = overview.learned
    assert learned is not None and learned.components is not None
    drawn = {
        "strengths": charts.draw_strengths(learned.components, overview.shown),
        "gates": charts.draw_gates(learned.components, overview.shown),
    }
    has_shocks = any(name.startswith("shock") for name in learned.components.gates)
    shock = "what comes suddenly" if has_shocks else "here the rain that it was given"
    gated = "accumulation, release and shock" if has_shocks else "accumulation and release"
    body = [
        paragraphs(["Before it forecasts, CANDOR splits the recent past of every sensor into background (what is usual "
                    f"here), accumulation (what builds up), release (what is let go) and shock ({shock})."]),
        _choice(overview, "components"),
        chart_place("strengths", drawn["strengths"]),
        heading("Gates"),
        chart_place("gates", drawn["gates"]),
        note("Strengths are root mean squares of the network's states before they are normalised. They do not add up: "
             "compare a component with itself, over time and over sensors, not with others or with readings. Gates "
             f"choose what counts as {gated}. The names say what each is meant for; whether it is that has to be "
             "seen."),
    ]  # fmt: skip
    return Section("components", "What its past is made of", "\n".join(body), drawn)


def _fusion(overview: Overview) -> Section:
    learned = overview.learned
    assert learned is not None
    chart = charts.draw_fusion(learned, overview.shown)
    branches = ", ".join(BRANCHES[branch].words for branch in learned.fusion)
    body = [
        paragraphs([f"A forecast is fused from what {len(learned.fusion)} branches of the network say: {branches}. "
                    "Their weights at a step add up to one."]),
        _choice(overview, "fusion"),
        chart_place("fusion", chart),
        note(f"Solid: the next forecast of the chosen sensor. Dotted: mean over all sensors and "
             f"{counted(learned.windows, 'window')}."),
    ]  # fmt: skip
    return Section("fusion", "What its forecast rests on", "\n".join(body), {"fusion": chart})


def _network(overview: Overview) -> Section:
    panel, scores = overview.panel, overview.scores
    errors = None if scores is None else [scores.by_sensor[sensor]["mae"] for sensor in panel.sensor_ids]
    places = find_places(panel)
    chart = maps.draw_network(places, panel.edges, _names(overview), errors)
    edges = len(panel.edges)
    said = ["Arrows: direction of the edges." if edges else "The sensors have no edges."]
    if errors is not None:
        said.append("Colour: mean absolute error in the test part.")
    if not places.is_map:
        said.append("Not all places are known: the sensors stand on a circle.")
    if places.is_parted:
        said.append("Sensors at (nearly) the same place are drawn side by side.")
    if edges > maps.MOST_EDGES:
        said.append(f"The first {maps.MOST_EDGES:,} edges are shown.")
    click = note("Click a sensor to see its forecast.", is_for_paper=False)
    body = [chart_place("network", chart), note(" ".join(said)), click, _key(overview)]
    return Section("network", "The network", "\n".join(body), {"network": chart})


def _key(overview: Overview) -> str:
    """Returns the list of sensors by their numbers, with what is known of each."""
    scores = overview.scores
    intervals = None if scores is None else scores.intervals
    head = ["sensor"]
    head += _in_brackets(overview.unit, "MAE", "RMSE") if scores is not None else []
    head += ["held"] if intervals is not None else []
    rows: list[Sequence[Cell]] = []
    for place, (sensor, summary) in enumerate(
        zip(overview.panel.sensors, overview.check.sensors, strict=True), start=1
    ):
        row: list[Cell] = [(f"{place} · {sensor.name}", sensor.id) if sensor.name else f"{place} · {sensor.id}"]
        if scores is not None:
            row += [significant(scores.by_sensor[sensor.id][score]) for score in ("mae", "rmse")]
        if intervals is not None:
            row.append(percent(intervals["by_sensor"][sensor.id]["coverage"]))
        rows.append([*row, percent(summary.missing_share), str(summary.edges_in), str(summary.edges_out)])
    made = table([*head, "missing", "edges in", "edges out"], rows)
    return made if len(rows) <= _MOST_OPEN_ROWS else folded(f"all {len(rows):,} sensors", made)


def _learned_edges(overview: Overview) -> Section:
    learned = overview.learned
    assert learned is not None
    places = find_places(overview.panel)
    titles = {"forward": "Along the edges", "reverse": "Against the edges"}
    drawn = {
        f"learned-{direction}": maps.draw_learned(places, edges, direction, _names(overview))
        for direction, edges in learned.edges.items()
        if len(edges.weight)
    }
    body = [
        paragraphs(["How much each sensor hears from others: the share of a sender among all that a sensor hears from, "
                    f"mean over {counted(learned.windows, 'window')}. Wide lines weigh much; arrows point to who "
                    "hears."])
    ]  # fmt: skip
    for name, chart in drawn.items():
        body += [heading(titles[name.removeprefix("learned-")]), chart_place(name, chart)]
    heaviest = sorted(
        (
            (float(weight), direction, int(sender), int(receiver))
            for direction, edges in learned.edges.items()
            for sender, receiver, weight in zip(edges.sender, edges.receiver, edges.weight, strict=True)
            if sender != receiver
        ),
        reverse=True,
    )[:_HEAVIEST]
    rows = [
        (_label(overview, sender), _label(overview, receiver), titles[direction].lower(), percent(weight))
        for weight, direction, sender, receiver in heaviest
    ]
    body.append(folded(f"the {len(rows)} heaviest", table(("from", "heard by", "way", "share"), rows, words=3)))
    return Section("learned", "What sensors hear from one another", "\n".join(body), drawn)


def _errors(overview: Overview) -> Section:
    scores, panel, unit = overview.scores, overview.panel, overview.unit
    assert scores is not None
    interval = duration(panel.times.interval)
    errors = [scores.by_sensor[sensor]["mae"] for sensor in panel.sensor_ids]
    labels = [_label(overview, place) for place in range(len(panel.sensors))]
    drawn = {
        "steps": charts.draw_steps(scores, unit, interval),
        "sensors": charts.draw_sensors(errors, labels, _names(overview), unit),
    }
    reported = overview.record.protocol.reported_steps()
    rows = [
        (
            str(step), duration(step * panel.times.interval),
            *(significant(scores.by_step[score][step - 1]) for score in ("mae", "rmse")),
        ) for step in reported
    ]  # fmt: skip
    body = [heading("By step"), chart_place("steps", drawn["steps"])]
    body.append(table(("step", "ahead", *_in_brackets(unit, "MAE", "RMSE")), rows, words=1))
    body += [heading("By sensor"), chart_place("sensors", drawn["sensors"])]
    if (clock := scores.clock) is not None:
        drawn["clock"] = charts.draw_clock(clock, unit)
        hardest, easiest = (clock.names[int(place)] for place in (np.argmax(clock.mae), np.argmin(clock.mae)))
        body += [heading(f"By {clock.word}"), chart_place("clock", drawn["clock"])]
        body.append(
            note(f"Largest: {hardest}; smallest: {easiest}. Local clock of what was forecast, "
                 f"{counted(clock.windows, 'window')} of the test part.")
        )  # fmt: skip
    return Section("errors", "Where it errs", "\n".join(body), drawn)


def _coverage(overview: Overview) -> Section:
    assert overview.scores is not None and overview.scores.intervals is not None
    intervals, interval = overview.scores.intervals, duration(overview.panel.times.interval)
    chart = charts.draw_coverage(intervals, interval)
    body = [paragraphs(coverage_in_words(intervals, overview.unit)), chart_place("coverage", chart)]
    body.append(note(f"Method: {intervals['method']}."))
    return Section("coverage", "Do the intervals hold?", "\n".join(body), {"coverage": chart})


def _training(overview: Overview) -> Section:
    assert overview.training is not None
    chart = charts.draw_training(overview.training)
    said = "Training: over the steps supervised in that epoch, with dropout. Validation: over all steps."
    return Section("training", "Training", f"{chart_place('training', chart)}\n{note(said)}", {"training": chart})


def _data(overview: Overview) -> Section:
    findings = overview.check.findings
    levels = ("error", "warning", "note")
    counts = ", ".join(counted(sum(finding.level == level for finding in findings), level) for level in levels)
    said = f"A check of the readings that were used found {counts if findings else 'nothing amiss'}."
    rows = [
        (finding.level.value, finding.what, finding.where, finding.hint)
        for level in levels
        for finding in findings
        if finding.level == level
    ]
    body = [paragraphs([said, *_gaps_in_words(overview)])]
    if rows:
        body.append(table(("level", "what", "where", "what to do"), rows, words=4))
    return Section("data", "Quality of the data", "\n".join(body))


def _gaps_in_words(overview: Overview) -> Iterator[str]:
    """Yields sentences that say how many readings are missing, and where most."""
    sensors, names = overview.check.sensors, _names(overview)
    gaps = [sensor.longest_gap for sensor in sensors]
    if not any(gaps):
        yield "No reading is missing."
        return
    shares = [sensor.missing_share or 0.0 for sensor in sensors]
    worst, longest = int(np.argmax(shares)), int(np.argmax(gaps))
    share, length = percent(overview.check.missing_share), duration(gaps[longest] * overview.panel.times.interval)
    start = (sensors[longest].longest_gap_start or "")[:16].replace("T", " ")
    yield f"{share} of them are missing, most at sensor {names[worst]}: {percent(shares[worst])}."
    yield f"The longest gap is {length}, at sensor {names[longest]} from {start}."


def _configuration(overview: Overview) -> Section:
    record = overview.record
    made = record.made.isoformat(sep=" ", timespec="minutes") if record.made is not None else NOTHING
    general = [
        ("model", record.label), ("data", record.data), ("made", made), ("seed", str(record.seed)),
        ("unit", record.unit or NOTHING), ("fingerprint of the data", record.fingerprint),
    ]  # fmt: skip
    protocol = [(name, NOTHING if value is None else str(value)) for name, value in record.protocol if value != ()]
    body = [
        table(("of the run", ""), general, words=2),
        folded("protocol", table(("setting", "value"), protocol, words=2)),
        folded("settings of the model", table(("setting", "value"), list(overview.settings.items()), words=2)),
        folded("versions", table(("package", "version"), list(record.versions.items()), words=2)),
    ]
    return Section("configuration", "Configuration and versions", "\n".join(body))


def _in_brackets(unit: str, *scores: str) -> list[str]:
    return [f"{score} [{unit}]" if unit else score for score in scores]


def _names(overview: Overview) -> list[str]:
    return [f"{place} · {_full_name(sensor)}" for place, sensor in enumerate(overview.panel.sensors, start=1)]


def _label(overview: Overview, place: int) -> str:
    return f"{place + 1} {_short_name(overview.panel.sensors[place])}"


def _choice(overview: Overview, place: str) -> str:
    return sensor_choice(_names(overview), overview.shown, place)


def _full_name(sensor: Sensor) -> str:
    """Returns the name of a sensor with its id, or the id alone."""
    return f"{sensor.name} ({sensor.id})" if sensor.name else sensor.id


def _short_name(sensor: Sensor) -> str:
    """Returns the name of a sensor, or its id, cut to what fits beside a chart."""
    name = sensor.name or sensor.id
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1].rstrip()}…"
