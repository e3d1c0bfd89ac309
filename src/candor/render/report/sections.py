"""The sections of a report, in the order in which they are read; those a run has nothing to say in are left out."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from candor.core.text import (
    NOTHING,
    amount,
    counted,
    duration,
    format_time,
    percent,
    significant,
    time_format,
    timestamp,
)
from candor.explain.overview import Learned, Overview
from candor.explain.pictures import ComponentPicture, TrainingPicture
from candor.explain.scores import Scores, coverage_in_words, skill_in_words
from candor.render.figures import style
from candor.render.figures.style import cut, in_unit
from candor.render.html import Cell, Section, cards, folded, heading, note, paragraphs, table
from candor.render.report import charts, maps
from candor.render.report.charts import Chart

_MOST_OPEN_ROWS = 15  # longer tables are folded
_HEAVIEST = 10  # learned edges in the table
_LONGEST_LABEL = 22


class ReportSections:
    """Write the sections of a report, and collects the charts that stand in them by the ids of their places."""

    def __init__(self, overview: Overview) -> None:
        self.overview, self.panel, self.unit = overview, overview.panel, overview.unit
        sensors = overview.panel.sensors
        full_names = (f"{sensor.name} ({sensor.id})" if sensor.name else sensor.id for sensor in sensors)
        self.names = [f"{place} · {name}" for place, name in enumerate(full_names, start=1)]
        short_names = (cut(sensor.name or sensor.id, _LONGEST_LABEL) for sensor in sensors)
        self.labels = [f"{place} {name}" for place, name in enumerate(short_names, start=1)]
        self.interval = duration(overview.panel.times.interval)
        self.charts: dict[str, Chart] = {}

    def sections(self) -> Iterator[Section]:
        """Yield the sections a run has something to say in."""
        scores, learned, training = self.overview.scores, self.overview.learned, self.overview.training
        yield self._introduction()
        if scores is not None:
            yield self._skill(scores)
        yield self._forecast()
        if learned is not None and learned.components is not None:
            yield self._components(learned.components)
        if learned is not None and len(learned.fusion) > 1:
            yield self._fusion(learned)
        yield self._network()
        if learned is not None and any(len(edges.weight) for edges in learned.edges.values()):
            yield self._learned_edges(learned)
        if scores is not None:
            yield self._errors(scores)
        if scores is not None and scores.intervals is not None:
            yield self._coverage(scores.intervals)
        if training is not None:
            yield self._training(training)
        yield self._data()
        yield self._configuration()

    def _show(self, name: str, chart: Chart) -> str:
        """Return the place where the page draws a chart."""
        self.charts[name] = chart
        height = f"{chart.height}px"
        if chart.aspect is not None:  # 110 pixels are for what stands around a map
            height = f"min({chart.height}px, 110px + {80 / chart.aspect:.0f}vw)"
        facts = f'style="height:{height}" role="img" aria-label="{escape(chart.says)}"'
        return f'<div class="chart" id="chart-{escape(name)}" {facts}></div>'

    def _choice(self, place: str) -> str:
        """Return a selector of sensors; all selectors of the page show the same sensor."""
        chosen = self.overview.shown
        options = "\n".join(
            f'<option value="{number}"{" selected" if number == chosen else ""}>{escape(name)}</option>'
            for number, name in enumerate(self.names)
        )
        return (
            f'<p class="choice"><label for="sensor-{place}">Sensor</label>\n'
            f'<select id="sensor-{place}" class="sensor-choice" autocomplete="off">\n{options}\n</select></p>\n'
            f'<p class="chosen">Sensor: <span class="chosen-name">{escape(self.names[chosen])}</span></p>'
        )

    def _errors_head(self) -> list[str]:
        return [in_unit(score, self.unit) for score in ("MAE", "RMSE")]

    def _introduction(self) -> Section:
        facts = [(f"{len(self.panel.sensors):,}", "sensors"), (self.overview.ahead, "ahead")]
        if (scores := self.overview.scores) is not None:
            facts.append((amount(scores.overall["mae"], self.unit), "mean absolute error"))
            known = {rule.name: rule.skill for rule in scores.rules if rule.skill is not None}
            if "last-value" in known:
                facts.append((f"{-100 * known['last-value']:+.1f} %", "error against last-value"))
            if scores.intervals is not None:
                asked = f"coverage of {100 * scores.intervals['asked_coverage']:g} % intervals"
                facts.append((percent(scores.intervals["overall"]["coverage"]), asked))
        body = f"{cards(facts)}\n{paragraphs(self.overview.introduction)}"
        return Section("trained", "What was trained on what", body)

    def _skill(self, scores: Scores) -> Section:
        model, overall = self.overview.record.label, scores.overall
        rows: list[Sequence[Cell]] = [
            ((model, "the model of this run"), significant(overall["mae"]), significant(overall["rmse"]), "")
        ]
        for rule in scores.rules:
            gain = NOTHING if rule.skill is None else f"{100 * rule.skill:+.1f} %"
            rows.append(((rule.name, rule.meaning), significant(rule.mae), significant(rule.rmse), gain))
        said = (
            "MAE: mean absolute error. RMSE: root mean square error, which large misses dominate. Skill: the share of "
            "the rule's MAE that the model avoids; 100 % is perfect, 0 % no better, below 0 % worse."
        )
        words = paragraphs(skill_in_words(scores, model, self.unit, self.overview.record.protocol.horizon))
        shown = table(("", *self._errors_head(), f"skill of {model}"), rows)
        return Section("skill", "Skill against simple rules", f"{words}\n{shown}\n{note(said)}")

    def _forecast(self) -> Section:
        outlook, form = self.overview.outlook, f"%Y-%m-%d {time_format(self.panel.times.interval)}"
        begin, end = (format_time(moment, form) for moment in (outlook.ahead.times[0], outlook.ahead.times[-1]))
        said = [f"The next forecast runs from {begin} to {end}; the one before it is shown beside what happened."]
        if outlook.ahead.lower is not None:
            said.append(f"Shaded: where {100 * outlook.coverage:g} % of the readings are expected.")
        chart = self._show("forecast", charts.draw_outlook(outlook, self.overview.shown))
        return Section(
            "forecast", "Forecast of a sensor", f"{self._choice('forecast')}\n{chart}\n{note(' '.join(said))}"
        )

    def _components(self, components: ComponentPicture) -> Section:
        has_shocks = any(name.startswith("shock") for name in components.gates)
        shock = "what comes suddenly" if has_shocks else "here the rain that it was given"
        gated = "accumulation, release and shock" if has_shocks else "accumulation and release"
        said = (
            "Before it forecasts, CANDOR splits the recent past of every sensor into background (what is usual here), "
            f"accumulation (what builds up), release (what is let go) and shock ({shock})."
        )
        small = (
            "Strengths are root mean squares of the network's states before they are normalised. They do not add up: "
            "compare a component with itself, over time and over sensors, not with others or with readings. Gates "
            f"choose what counts as {gated}. The names say what each is meant for; whether it is that has to be seen."
        )
        body = [
            paragraphs([said]),
            self._choice("components"),
            self._show("strengths", charts.draw_strengths(components, self.overview.shown)),
            heading("Gates"),
            self._show("gates", charts.draw_gates(components, self.overview.shown)),
            note(small),
        ]
        return Section("components", "What its past is made of", "\n".join(body))

    def _fusion(self, learned: Learned) -> Section:
        branches = ", ".join(style.BRANCHES[branch].words for branch in learned.fusion)
        said = (
            f"A forecast is fused from what {len(learned.fusion)} branches of the network say: {branches}. Their "
            "weights at a step add up to one."
        )
        windows = counted(learned.windows, "window")
        body = [
            paragraphs([said]),
            self._choice("fusion"),
            self._show("fusion", charts.draw_fusion(learned, self.overview.shown)),
            note(f"Solid: the next forecast of the chosen sensor. Dotted: mean over all sensors and {windows}."),
        ]
        return Section("fusion", "What its forecast rests on", "\n".join(body))

    def _network(self) -> Section:
        scores, edges, places = self.overview.scores, self.panel.edges, maps.find_places(self.panel)
        errors = None if scores is None else [scores.by_sensor[sensor]["mae"] for sensor in self.panel.sensor_ids]
        said = {
            "Arrows: direction of the edges." if len(edges) else "The sensors have no edges.": True,
            "Colour: mean absolute error in the test part.": errors is not None,
            "Not all places are known: the sensors stand on a circle.": not places.is_map,
            "Sensors at (nearly) the same place are drawn side by side.": places.is_parted,
            f"The first {maps.MOST_EDGES:,} edges are shown.": len(edges) > maps.MOST_EDGES,
        }
        body = [
            self._show("network", maps.draw_network(places, edges, self.names, errors)),
            note(" ".join(sentence for sentence, is_true in said.items() if is_true)),
            note("Click a sensor to see its forecast.", is_for_paper=False),
            self._sensor_table(),
        ]
        return Section("network", "The network", "\n".join(body))

    def _sensor_table(self) -> str:
        """Return the list of sensors by their numbers, with what is known of each."""
        scores = self.overview.scores
        intervals = None if scores is None else scores.intervals
        head = ["sensor", *(self._errors_head() if scores is not None else ())]
        head += ["coverage"] if intervals is not None else []
        rows: list[Sequence[Cell]] = []
        numbered = enumerate(zip(self.panel.sensors, self.overview.check.sensors, strict=True), start=1)
        for place, (sensor, summary) in numbered:
            row: list[Cell] = [(f"{place} · {sensor.name or sensor.id}", sensor.id if sensor.name else "")]
            if scores is not None:
                row += [significant(scores.by_sensor[sensor.id][score]) for score in ("mae", "rmse")]
            if intervals is not None:
                row.append(percent(intervals["by_sensor"][sensor.id]["coverage"]))
            rows.append([*row, percent(summary.missing_share), str(summary.edges_in), str(summary.edges_out)])
        made = table([*head, "missing", "edges in", "edges out"], rows)
        return made if len(rows) <= _MOST_OPEN_ROWS else folded(f"all {len(rows):,} sensors", made)

    def _learned_edges(self, learned: Learned) -> Section:
        places, windows = maps.find_places(self.panel), counted(learned.windows, "window")
        said = (
            "How much each sensor hears from others: the share of a sender among all that a sensor hears from, mean "
            f"over {windows}. Wide lines weigh much; arrows point to who hears."
        )
        body, heard = [paragraphs([said])], []
        for direction, edges in learned.edges.items():
            if len(edges.weight):
                chart = maps.draw_learned(places, edges, direction, self.names)
                body += [
                    heading(style.BRANCHES[direction].words.capitalize()),
                    self._show(f"learned-{direction}", chart),
                ]
            columns = (column.tolist() for column in (edges.weight, edges.sender, edges.receiver))
            heard += [(weight, direction, *ends) for weight, *ends in zip(*columns, strict=True) if ends[0] != ends[1]]
        rows = [
            (self.labels[sender], self.labels[receiver], style.BRANCHES[direction].words, percent(weight))
            for weight, direction, sender, receiver in sorted(heard, reverse=True)[:_HEAVIEST]
        ]
        body.append(folded(f"the {len(rows)} heaviest", table(("from", "heard by", "way", "share"), rows, words=3)))
        return Section("learned", "What sensors hear from one another", "\n".join(body))

    def _errors(self, scores: Scores) -> Section:
        errors = [scores.by_sensor[sensor]["mae"] for sensor in self.panel.sensor_ids]
        rows = [
            (
                str(step), duration(step * self.panel.times.interval),
                *(significant(scores.by_step[score][step - 1]) for score in ("mae", "rmse")),
            )
            for step in self.overview.record.protocol.reported_steps()
        ]  # fmt: skip
        body = [
            heading("By step"),
            self._show("steps", charts.draw_steps(scores, self.unit, self.interval)),
            table(("step", "ahead", *self._errors_head()), rows, words=1),
            heading("By sensor"),
            self._show("sensors", charts.draw_sensors(errors, self.labels, self.names, self.unit)),
        ]
        if (clock := scores.clock) is not None:
            hardest, easiest = (clock.names[int(place)] for place in (np.argmax(clock.mae), np.argmin(clock.mae)))
            windows = counted(clock.windows, "window")
            said = f"Local clock of what was forecast, {windows} of the test part."
            body += [heading(f"By {clock.word}"), self._show("clock", charts.draw_clock(clock, self.unit))]
            body.append(note(f"Largest: {hardest}; smallest: {easiest}. {said}"))
        return Section("errors", "Where it errs", "\n".join(body))

    def _coverage(self, intervals: Mapping[str, Any]) -> Section:
        chart = self._show("coverage", charts.draw_coverage(intervals, self.interval))
        words = paragraphs(coverage_in_words(intervals, self.unit))
        method = note(f"Method: {intervals['method']}.")
        return Section("coverage", "Coverage of the intervals", f"{words}\n{chart}\n{method}")

    def _training(self, training: TrainingPicture) -> Section:
        said = "Training: over the steps supervised in that epoch, with dropout. Validation: over all steps."
        chart = self._show("training", charts.draw_training(training))
        return Section("training", "Training", f"{chart}\n{note(said)}")

    def _data(self) -> Section:
        levels, findings = ("error", "warning", "note"), self.overview.check.findings
        by_level = {level: [one for one in findings if one.level == level] for level in levels}
        counts = ", ".join(counted(len(found), level) for level, found in by_level.items())
        said = f"A check of the readings that were used found {counts if findings else 'nothing amiss'}."
        rows = [(one.level.value, one.what, one.where, one.hint) for found in by_level.values() for one in found]
        body = [paragraphs([said, *self._gaps_in_words()])]
        if rows:
            body.append(table(("level", "what", "where", "what to do"), rows, words=4))
        return Section("data", "Quality of the data", "\n".join(body))

    def _gaps_in_words(self) -> Iterator[str]:
        """Yield sentences that say how many readings are missing, and where most."""
        check, sensors = self.overview.check, self.overview.check.sensors
        gaps = [sensor.longest_gap for sensor in sensors]
        if not any(gaps):
            yield "No reading is missing."
            return
        shares = [sensor.missing_share or 0.0 for sensor in sensors]
        worst, longest = int(np.argmax(shares)), int(np.argmax(gaps))
        share, length = percent(check.missing_share), duration(gaps[longest] * self.panel.times.interval)
        start = (sensors[longest].longest_gap_start or "")[:16].replace("T", " ")
        yield f"{share} of them are missing, most at sensor {self.names[worst]}: {percent(shares[worst])}."
        yield f"The longest gap is {length}, at sensor {self.names[longest]} from {start}."

    def _configuration(self) -> Section:
        record = self.overview.record
        general = [
            ("model", record.label), ("data", record.data), ("made (UTC)", timestamp(record.made)),
            ("seed", str(record.seed)), ("unit", record.unit or NOTHING),
            ("fingerprint of the data", record.fingerprint),
        ]  # fmt: skip
        protocol = [(name, NOTHING if value is None else str(value)) for name, value in record.protocol if value != ()]
        body = [
            table(("of the run", ""), general, words=2),
            folded("protocol", table(("setting", "value"), protocol, words=2)),
            folded("settings of the model", table(("setting", "value"), list(self.overview.settings.items()), words=2)),
            folded("versions", table(("package", "version"), list(record.versions.items()), words=2)),
        ]
        return Section("configuration", "Configuration and versions", "\n".join(body))
