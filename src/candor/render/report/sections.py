"""The sections of a report, in the order in which they are read; those a run has nothing to say in are left out."""

from collections.abc import Iterator, Sequence

import numpy as np

from candor.core.text import NOTHING, amount, counted, duration, format_time, percent, significant, time_format
from candor.data.panel import Sensor
from candor.render.report import charts, maps
from candor.render.report.content import Content
from candor.render.report.judgement import coverage_in_words, skill_in_words
from candor.render.report.outlook import COVERAGE
from candor.render.report.parts import (
    Cell,
    Section,
    cards,
    chart_place,
    folded,
    heading,
    note,
    paragraphs,
    sensor_choice,
    table,
)

_MOST_OPEN_ROWS = 15  # longer tables are folded
_HEAVIEST = 10  # learned edges in the table
_LONGEST_LABEL = 22


def all_sections(content: Content) -> Iterator[Section]:
    """Yields the sections a run has something to say in."""
    yield _introduction(content)
    if content.judgement is not None:
        yield _skill(content)
    yield _forecast(content)
    if content.reasons is not None:
        if content.reasons.makeup is not None:
            yield _components(content)
        if len(content.reasons.fusion) > 1:
            yield _fusion(content)
    yield _network(content)
    if content.reasons is not None and any(len(edges.weight) for edges in content.reasons.edges.values()):
        yield _learned_edges(content)
    if content.judgement is not None:
        yield _errors(content)
        if content.judgement.intervals is not None:
            yield _coverage(content)
    if content.epochs:
        yield _training(content)
    yield _data(content)
    yield _configuration(content)


def _introduction(content: Content) -> Section:
    facts = [(f"{len(content.panel.sensors):,}", "sensors"), (content.ahead, "ahead")]
    judgement = content.judgement
    if judgement is not None:
        facts.append((amount(judgement.overall["mae"], content.unit), "mean absolute error"))
        known = {rule.name: rule.skill for rule in judgement.rules if rule.skill is not None}
        if "last-value" in known:
            facts.append((f"{-100 * known['last-value']:+.1f} %", "error against last-value"))
        if judgement.intervals is not None:
            asked = f"held by {100 * judgement.intervals['asked_coverage']:g} % intervals"
            facts.append((percent(judgement.intervals["overall"]["coverage"]), asked))
    return Section("trained", "What was trained on what", cards(facts) + "\n" + paragraphs(content.introduction))


def _skill(content: Content) -> Section:
    judgement, unit, model = content.judgement, content.unit, content.record.label
    assert judgement is not None
    overall = judgement.overall
    rows: list[Sequence[Cell]] = [
        ((model, "the model of this run"), significant(overall["mae"]), significant(overall["rmse"]), "")
    ]
    for rule in judgement.rules:
        gain = NOTHING if rule.skill is None else f"{100 * rule.skill:+.1f} %"
        rows.append(((rule.name, rule.meaning), significant(rule.mae), significant(rule.rmse), gain))
    head = ("", *_in_brackets(unit, "MAE", "RMSE"), f"skill of {model}")
    body = [
        paragraphs(skill_in_words(judgement, model, unit, content.record.protocol.horizon)),
        table(head, rows),
        note("MAE: mean absolute error. RMSE: root mean square error, which large misses dominate. Skill: the share of "
             "the rule's MAE that the model avoids; 100 % is perfect, 0 % no better, below 0 % worse."),
    ]  # fmt: skip
    return Section("skill", "Skill against simple rules", "\n".join(body))


def _forecast(content: Content) -> Section:
    chart = charts.draw_outlook(content.outlook, content.liveliest)
    ahead, form = content.outlook.ahead, f"%Y-%m-%d {time_format(content.panel.times.interval)}"
    begin, end = (format_time(moment, form) for moment in (ahead.times[0], ahead.times[-1]))
    said = [f"The next forecast runs from {begin} to {end}; the one before it is shown beside what happened."]
    if ahead.lower is not None:
        said.append(f"Shaded: where {100 * COVERAGE:g} % of the readings are expected.")
    body = [_choice(content, "forecast"), chart_place("forecast", chart), note(" ".join(said))]
    return Section("forecast", "Forecast of a sensor", "\n".join(body), {"forecast": chart})


def _components(content: Content) -> Section:
    reasons = content.reasons
    assert reasons is not None and reasons.makeup is not None
    drawn = {
        "strengths": charts.draw_strengths(reasons.makeup, content.liveliest),
        "gates": charts.draw_gates(reasons.makeup, content.liveliest),
    }
    has_shocks = any(name.startswith("shock") for name in reasons.makeup.gates)
    shock = "what comes suddenly" if has_shocks else "here the rain that it was given"
    gated = "accumulation, release and shock" if has_shocks else "accumulation and release"
    body = [
        paragraphs(["Before it forecasts, CANDOR splits the recent past of every sensor into background (what is usual "
                    f"here), accumulation (what builds up), release (what is let go) and shock ({shock})."]),
        _choice(content, "components"),
        chart_place("strengths", drawn["strengths"]),
        heading("Gates"),
        chart_place("gates", drawn["gates"]),
        note("Strengths are root mean squares of the network's states before they are normalised. They do not add up: "
             "compare a component with itself, over time and over sensors, not with others or with readings. Gates "
             f"choose what counts as {gated}. The names say what each is meant for; whether it is that has to be "
             "seen."),
    ]  # fmt: skip
    return Section("components", "What its past is made of", "\n".join(body), drawn)


def _fusion(content: Content) -> Section:
    reasons = content.reasons
    assert reasons is not None
    chart = charts.draw_fusion(reasons, content.liveliest)
    branches = ", ".join(charts.BRANCHES[branch][0] for branch in reasons.fusion)
    body = [
        paragraphs([f"A forecast is fused from what {len(reasons.fusion)} branches of the network say: {branches}. "
                    "Their weights at a step add up to one."]),
        _choice(content, "fusion"),
        chart_place("fusion", chart),
        note(f"Solid: the next forecast of the chosen sensor. Dotted: mean over all sensors and "
             f"{counted(reasons.windows, 'window')}."),
    ]  # fmt: skip
    return Section("fusion", "What its forecast rests on", "\n".join(body), {"fusion": chart})


def _network(content: Content) -> Section:
    panel, judgement = content.panel, content.judgement
    errors = None if judgement is None else [judgement.by_sensor[sensor]["mae"] for sensor in panel.sensor_ids]
    chart = maps.draw_network(content.places, panel.edges, _names(content), errors)
    edges = len(panel.edges)
    said = ["Arrows: direction of the edges." if edges else "The sensors have no edges."]
    if errors is not None:
        said.append("Colour: mean absolute error in the test part.")
    if not content.places.is_map:
        said.append("Not all places are known: the sensors stand on a circle.")
    if content.places.is_parted:
        said.append("Sensors at (nearly) the same place are drawn side by side.")
    if edges > maps.MOST_EDGES:
        said.append(f"The first {maps.MOST_EDGES:,} edges are shown.")
    click = note("Click a sensor to see its forecast.", is_for_paper=False)
    body = [chart_place("network", chart), note(" ".join(said)), click, _key(content)]
    return Section("network", "The network", "\n".join(body), {"network": chart})


def _key(content: Content) -> str:
    """Returns the list of sensors by their numbers, with what is known of each."""
    judgement = content.judgement
    intervals = None if judgement is None else judgement.intervals
    head = ["sensor"]
    head += _in_brackets(content.unit, "MAE", "RMSE") if judgement is not None else []
    head += ["held"] if intervals is not None else []
    rows: list[Sequence[Cell]] = []
    for place, (sensor, summary) in enumerate(zip(content.panel.sensors, content.check.sensors, strict=True), start=1):
        row: list[Cell] = [(f"{place} · {sensor.name}", sensor.id) if sensor.name else f"{place} · {sensor.id}"]
        if judgement is not None:
            row += [significant(judgement.by_sensor[sensor.id][score]) for score in ("mae", "rmse")]
        if intervals is not None:
            row.append(percent(intervals["by_sensor"][sensor.id]["coverage"]))
        rows.append([*row, percent(summary.missing_share), str(summary.edges_in), str(summary.edges_out)])
    made = table([*head, "missing", "edges in", "edges out"], rows)
    return made if len(rows) <= _MOST_OPEN_ROWS else folded(f"all {len(rows):,} sensors", made)


def _learned_edges(content: Content) -> Section:
    reasons = content.reasons
    assert reasons is not None
    titles = {"forward": "Along the edges", "reverse": "Against the edges"}
    drawn = {
        f"learned-{direction}": maps.draw_learned(content.places, edges, direction, _names(content))
        for direction, edges in reasons.edges.items()
        if len(edges.weight)
    }
    body = [
        paragraphs(["How much each sensor hears from others: the share of a sender among all that a sensor hears from, "
                    f"mean over {counted(reasons.windows, 'window')}. Wide lines weigh much; arrows point to who "
                    "hears."])
    ]  # fmt: skip
    for name, chart in drawn.items():
        body += [heading(titles[name.removeprefix("learned-")]), chart_place(name, chart)]
    heaviest = sorted(
        (
            (float(weight), direction, int(sender), int(receiver))
            for direction, edges in reasons.edges.items()
            for sender, receiver, weight in zip(edges.sender, edges.receiver, edges.weight, strict=True)
            if sender != receiver
        ),
        reverse=True,
    )[:_HEAVIEST]
    rows = [
        (_label(content, sender), _label(content, receiver), titles[direction].lower(), percent(weight))
        for weight, direction, sender, receiver in heaviest
    ]
    body.append(folded(f"the {len(rows)} heaviest", table(("from", "heard by", "way", "share"), rows, words=3)))
    return Section("learned", "What sensors hear from one another", "\n".join(body), drawn)


def _errors(content: Content) -> Section:
    judgement, panel, unit = content.judgement, content.panel, content.unit
    assert judgement is not None
    interval = duration(panel.times.interval)
    errors = [judgement.by_sensor[sensor]["mae"] for sensor in panel.sensor_ids]
    labels = [_label(content, place) for place in range(len(panel.sensors))]
    drawn = {
        "steps": charts.draw_steps(judgement, unit, interval),
        "sensors": charts.draw_sensors(errors, labels, _names(content), unit),
    }
    reported = content.record.protocol.reported_steps()
    rows = [
        (
            str(step), duration(step * panel.times.interval),
            *(significant(judgement.by_step[score][step - 1]) for score in ("mae", "rmse")),
        ) for step in reported
    ]  # fmt: skip
    body = [heading("By step"), chart_place("steps", drawn["steps"])]
    body.append(table(("step", "ahead", *_in_brackets(unit, "MAE", "RMSE")), rows, words=1))
    body += [heading("By sensor"), chart_place("sensors", drawn["sensors"])]
    if (clock := judgement.clock) is not None:
        drawn["clock"] = charts.draw_clock(clock, unit)
        hardest, easiest = (clock.names[int(place)] for place in (np.argmax(clock.mae), np.argmin(clock.mae)))
        body += [heading(f"By {clock.word}"), chart_place("clock", drawn["clock"])]
        body.append(
            note(f"Largest: {hardest}; smallest: {easiest}. Local clock of what was forecast, "
                 f"{counted(clock.windows, 'window')} of the test part.")
        )  # fmt: skip
    return Section("errors", "Where it errs", "\n".join(body), drawn)


def _coverage(content: Content) -> Section:
    assert content.judgement is not None and content.judgement.intervals is not None
    intervals, interval = content.judgement.intervals, duration(content.panel.times.interval)
    chart = charts.draw_coverage(intervals, interval)
    body = [paragraphs(coverage_in_words(intervals, content.unit)), chart_place("coverage", chart)]
    body.append(note(f"Method: {intervals['method']}."))
    return Section("coverage", "Do the intervals hold?", "\n".join(body), {"coverage": chart})


def _training(content: Content) -> Section:
    chart = charts.draw_training(content.epochs, content.unit)
    said = "Training: over the steps supervised in that epoch, with dropout. Validation: over all steps."
    return Section("training", "Training", f"{chart_place('training', chart)}\n{note(said)}", {"training": chart})


def _data(content: Content) -> Section:
    findings = content.check.findings
    levels = ("error", "warning", "note")
    counts = ", ".join(counted(sum(finding.level == level for finding in findings), level) for level in levels)
    said = f"A check of the readings that were used found {counts if findings else 'nothing amiss'}."
    rows = [
        (finding.level.value, finding.what, finding.where, finding.hint)
        for level in levels
        for finding in findings
        if finding.level == level
    ]
    body = [paragraphs([said, *_gaps_in_words(content)])]
    if rows:
        body.append(table(("level", "what", "where", "what to do"), rows, words=4))
    return Section("data", "Quality of the data", "\n".join(body))


def _gaps_in_words(content: Content) -> Iterator[str]:
    """Yields sentences that say how many readings are missing, and where most."""
    sensors, names = content.check.sensors, _names(content)
    gaps = [sensor.longest_gap for sensor in sensors]
    if not any(gaps):
        yield "No reading is missing."
        return
    shares = [sensor.missing_share or 0.0 for sensor in sensors]
    worst, longest = int(np.argmax(shares)), int(np.argmax(gaps))
    share, length = percent(content.check.missing_share), duration(gaps[longest] * content.panel.times.interval)
    start = (sensors[longest].longest_gap_start or "")[:16].replace("T", " ")
    yield f"{share} of them are missing, most at sensor {names[worst]}: {percent(shares[worst])}."
    yield f"The longest gap is {length}, at sensor {names[longest]} from {start}."


def _configuration(content: Content) -> Section:
    record = content.record
    made = record.made.isoformat(sep=" ", timespec="minutes") if record.made is not None else NOTHING
    general = [
        ("model", record.label), ("data", record.data), ("made", made), ("seed", str(record.seed)),
        ("unit", record.unit or NOTHING), ("fingerprint of the data", record.fingerprint),
    ]  # fmt: skip
    protocol = [(name, NOTHING if value is None else str(value)) for name, value in record.protocol if value != ()]
    body = [
        table(("of the run", ""), general, words=2),
        folded("protocol", table(("setting", "value"), protocol, words=2)),
        folded("settings of the model", table(("setting", "value"), list(content.settings.items()), words=2)),
        folded("versions", table(("package", "version"), list(record.versions.items()), words=2)),
    ]
    return Section("configuration", "Configuration and versions", "\n".join(body))


def _in_brackets(unit: str, *scores: str) -> list[str]:
    return [f"{score} [{unit}]" if unit else score for score in scores]


def _names(content: Content) -> list[str]:
    return [f"{place} · {_full_name(sensor)}" for place, sensor in enumerate(content.panel.sensors, start=1)]


def _label(content: Content, place: int) -> str:
    return f"{place + 1} {_short_name(content.panel.sensors[place])}"


def _choice(content: Content, place: str) -> str:
    return sensor_choice(_names(content), content.liveliest, place)


def _full_name(sensor: Sensor) -> str:
    """Returns the name of a sensor with its id, or the id alone."""
    return f"{sensor.name} ({sensor.id})" if sensor.name else sensor.id


def _short_name(sensor: Sensor) -> str:
    """Returns the name of a sensor, or its id, cut to what fits beside a chart."""
    name = sensor.name or sensor.id
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1].rstrip()}…"
