"""A graph is the same graph as a list and as a matrix, and nothing is dropped without a word."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.findings import Finding, Findings, Level
from candor.data.panel import Edges
from candor.data.readers.edges import read_edges

IDS = ("773869", "767541", "717447", "717446")
GRAPHS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.sampled_from([0.125, 0.5, 1.0, 3.0, 1234.5]),
    min_size=1,
)
Graph = dict[tuple[int, int], float]


def read(folder: Path, text: str, ids: tuple[str, ...] = IDS) -> tuple[Edges, Findings]:
    path, findings = folder / "edges.csv", Findings()
    path.write_text(text, encoding="utf-8")
    return read_edges(path, ids, findings), findings


def only(findings: Findings) -> Finding:
    (finding,) = findings
    return finding


def as_graph(edges: Edges) -> Graph:
    values = edges.weight if edges.distance is None else edges.distance
    assert values is not None
    pairs = zip(edges.source.tolist(), edges.target.tolist(), strict=True)
    return dict(zip(pairs, values.tolist(), strict=True))


def as_list(graph: Graph, header: str = "from,to,weight") -> str:
    rows = [f"{IDS[i]},{IDS[j]},{value!r}" for (i, j), value in graph.items()]
    return "\n".join([header, *rows])


def as_matrix(graph: Graph) -> np.ndarray:
    matrix = np.zeros((4, 4))
    for pair, value in graph.items():
        matrix[pair] = value
    return matrix


def assert_same(one: Edges, other: Edges) -> None:
    assert one.digest() == other.digest()
    np.testing.assert_array_equal(one.source, other.source)
    np.testing.assert_array_equal(one.target, other.target)


@settings(max_examples=50, deadline=None)
@given(graph=GRAPHS, data=st.data())
def test_rows_of_a_list_may_stand_in_any_order(
    graph: Graph, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    shuffled = dict(data.draw(st.permutations(list(graph.items()))))
    edges, _ = read(folder, as_list(graph))
    assert as_graph(edges) == graph
    assert_same(edges, read(folder, as_list(shuffled))[0])


@settings(max_examples=25, deadline=None)
@given(graph=GRAPHS, order=st.permutations(range(4)), across=st.permutations(range(4)))
def test_a_labelled_matrix_in_any_order_is_the_list(
    graph: Graph, order: list[int], across: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    expected, _ = read(folder, as_list(graph))
    names = [IDS[i] for i in order]
    frame = pd.DataFrame(as_matrix(graph)[np.ix_(order, order)], names, names)
    turned = frame[[IDS[i] for i in across]]
    for text in (
        turned.to_csv(),
        frame.to_csv(index=False),
        frame.to_csv(header=False),
        turned.replace(0, np.nan).to_csv(sep=";"),
    ):
        assert_same(read(folder, text)[0], expected)
    assert_same(read_edges(turned, IDS, Findings()), expected)
    turned.to_parquet(folder / "edges.parquet")
    assert_same(read_edges(folder / "edges.parquet", IDS, Findings()), expected)


@settings(max_examples=25, deadline=None)
@given(graph=GRAPHS)
def test_every_form_of_a_bare_matrix_is_the_list(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, matrix = tmp_path_factory.getbasetemp(), as_matrix(graph)
    expected, _ = read(folder, as_list(graph))
    np.save(folder / "adj.npy", matrix)
    np.savez(folder / "adj.npz", adj=matrix)
    (folder / "adj.pkl").write_bytes(pickle.dumps(matrix))
    np.savetxt(folder / "adj.csv", matrix, delimiter=",")
    np.savetxt(folder / "adj.txt", matrix)
    pd.DataFrame(matrix).to_csv(folder / "counted.csv")
    for name in ("adj.npy", "adj.npz", "adj.pkl", "adj.csv", "adj.txt", "counted.csv"):
        findings = Findings()
        assert_same(read_edges(folder / name, IDS, findings), expected)
        assert f"{', '.join(IDS)}, in this order" in findings[0].what and findings[0].level is Level.WARNING
    assert_same(read_edges(pd.DataFrame(matrix), IDS, Findings()), expected)


@settings(max_examples=50, deadline=None)
@given(graph=GRAPHS, order=st.permutations(range(4)))
def test_the_classic_pickle_is_the_list(
    graph: Graph, order: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    names = [IDS[i] for i in order]
    content = [names, {n: i for i, n in enumerate(names)}, as_matrix(graph)[np.ix_(order, order)]]
    (folder / "adj_mx.pkl").write_bytes(pickle.dumps(content, 2))
    expected, _ = read(folder, as_list(graph))
    assert_same(read_edges(folder / "adj_mx.pkl", IDS, Findings()), expected)


@pytest.mark.parametrize("name", ["edges.csv.gz", "edges.csv.bz2", "edges.csv.zst", "edges.parquet"])
def test_a_packed_list_is_the_list(name: str, tmp_path: Path) -> None:
    graph = {(0, 1): 1.5, (2, 3): 0.25}
    expected, _ = read(tmp_path, as_list(graph))
    frame = pd.DataFrame([(int(IDS[i]), int(IDS[j]), v) for (i, j), v in graph.items()])
    frame.columns = pd.Index(["from", "to", "weight"])
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        kind = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}[name.rpartition(".")[2]]
        with pa.CompressedOutputStream(str(tmp_path / name), kind) as stream:
            stream.write(as_list(graph).encode())
    assert_same(read_edges(tmp_path / name, IDS, Findings()), expected)
    assert_same(read_edges(frame, IDS, Findings()), expected)
    assert_same(read_edges(frame.set_index(["from", "to"]), IDS, Findings()), expected)


@pytest.mark.parametrize("remark", ["# made by GIS\n", '\n# "GIS", version 2, 2020\n#\n', "# one, two, three\n"])
def test_remarks_on_top_are_no_edges(remark: str, tmp_path: Path) -> None:
    graph = {(0, 1): 1.5, (2, 3): 0.25}
    expected, _ = read(tmp_path, as_list(graph))
    for text in (as_list(graph), as_list(graph, "from;to;weight").replace(",", ";").replace(".", ",")):
        assert_same(read(tmp_path, remark + text)[0], expected)
    with pytest.raises(InputError, match=f"line {remark.count(chr(10)) + 4} has 2"):
        read(tmp_path, f"{remark}{as_list(graph)}\na,b")


def test_a_remark_may_hold_the_names_of_a_list(tmp_path: Path) -> None:
    graph = {(0, 1): 1.5, (2, 3): 0.25}
    edges, findings = read(tmp_path, as_list(graph, "# from,to,weight"))
    assert as_graph(edges) == graph and edges.distance is None and findings == []


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("from,to,cost", ""),
        ("Source,Target,Distance_KM", "km"),
        ("src,dst,dist_m", "m"),
        ("start,end,length (miles)", "mi"),
        ("upstream,downstream,river_length_km", "km"),
        ("fromId,toId,distanceKm", "km"),
        ("from_sensor_id,to_sensor_id,distance [m]", "m"),
        ("origin,destination,distance_mi", "mi"),
        ("from,to,km", "km"),
        ("from,to,Miles", "mi"),
    ],
)
def test_columns_and_units_are_found_by_name(header: str, unit: str, tmp_path: Path) -> None:
    graph = {(0, 1): 1.5, (1, 2): 0.0}
    edges, findings = read(tmp_path, as_list(graph, header))
    assert as_graph(edges) == graph
    assert edges.weight is None and edges.distance_unit == unit
    assert not findings


def test_distance_and_weight_may_stand_together_among_other_columns(tmp_path: Path) -> None:
    text = "road,weight,to,from,distance_km\nA1,0.5,767541,773869,12\n"
    edges, findings = read(tmp_path, text)
    assert (edges.source.tolist(), edges.target.tolist()) == ([0], [1])
    assert edges.weight is not None and edges.weight.tolist() == [0.5]
    assert edges.distance is not None and edges.distance.tolist() == [12]
    assert not findings


def test_a_list_without_numbers_has_weights_of_one_and_a_note(tmp_path: Path) -> None:
    edges, findings = read(tmp_path, "from,to\n773869,767541\n767541,717447\n")
    assert as_graph(edges) == {(0, 1): 1.0, (1, 2): 1.0}
    assert only(findings).level is Level.NOTE and "weight 1" in only(findings).what
    edges, findings = read(tmp_path, "from,to,lanes\n773869,767541,4\n767541,717447,2\n")
    assert as_graph(edges) == {(0, 1): 1.0, (1, 2): 1.0}
    assert only(findings).level is Level.WARNING and "lanes" in only(findings).hint


@pytest.mark.parametrize("ids", [IDS, ("a", "b", "c", "d")])
def test_a_list_without_header_holds_distances_and_gives_a_warning(ids: tuple[str, ...], tmp_path: Path) -> None:
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    text = "\n".join(f"{ids[i]},{ids[j]},{i + 1}" for i, j in pairs)
    edges, findings = read(tmp_path, text, ids)
    assert edges.distance is not None and edges.weight is None
    assert as_graph(edges) == {(i, j): i + 1.0 for i, j in pairs}
    assert only(findings).level is Level.WARNING and "no header" in only(findings).what


def test_pairs_of_words_without_header_are_edges_too(tmp_path: Path) -> None:
    edges, findings = read(tmp_path, "a,b\nb,c\nc,d\nd,a\n", ("a", "b", "c", "d"))
    assert len(edges) == 4
    assert [finding.level for finding in findings] == [Level.WARNING, Level.NOTE]


def test_what_may_be_a_list_or_a_matrix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="list of edges as well as a matrix"):
        read(tmp_path, "0,1,0.5\n1,0,2\n2,1,0\n", ("0", "1", "2"))


def test_a_bare_matrix_whose_numbers_look_like_ids_stays_bare(tmp_path: Path) -> None:
    edges, _ = read(tmp_path, "0,1,2,0\n1,0,1,0\n2,1,0,0\n0,0,0,0\n", ("0", "1", "2", "3"))
    assert as_graph(edges) == {(0, 1): 1, (0, 2): 2, (1, 0): 1, (1, 2): 1, (2, 0): 2, (2, 1): 1}
    edges, _ = read(tmp_path, "NA,1,1,0\n1,NA,0,0\n1,0,NA,0\n0,0,0,\n", ("0", "1", "2", "3"))
    assert as_graph(edges) == {(0, 1): 1, (0, 2): 1, (1, 0): 1, (2, 0): 1}


def test_labels_that_merely_count_are_ids_where_sensors_are_called_so(tmp_path: Path) -> None:
    text = pd.DataFrame([[0, 5, 0], [0, 0, 0], [0, 0, 0]]).to_csv()
    assert as_graph(read(tmp_path, text, ("2", "0", "1"))[0]) == {(1, 2): 5.0}


def test_the_corner_of_a_framed_matrix_may_be_a_number(tmp_path: Path) -> None:
    text = "0,7,9\n7,0,5\n9,0,0\n"
    assert as_graph(read(tmp_path, text, ("9", "7"))[0]) == {(1, 0): 5.0}


def test_a_matrix_of_yes_and_no_has_weights_of_one() -> None:
    names = list(IDS)
    frame = pd.DataFrame(np.eye(4, k=1, dtype=bool), names, names)
    assert as_graph(read_edges(frame, IDS, Findings())) == {(i, i + 1): 1.0 for i in range(3)}


def test_ids_are_compared_as_text_and_points_only_help_where_needed(tmp_path: Path) -> None:
    text = "from,to,weight\n 1.0 ,2,5\n"
    assert as_graph(read(tmp_path, text, ("1", "2"))[0]) == {(0, 1): 5.0}
    assert as_graph(read(tmp_path, text, ("1", "2", "1.0"))[0]) == {(2, 1): 5.0}
    with pytest.raises(InputError, match="no edge joins"):
        read(tmp_path, "from,to,weight\n01,2,5\n", ("1", "2"))


def test_edges_to_sensors_without_readings_are_left_out_with_a_warning(tmp_path: Path) -> None:
    text = as_list({(0, 1): 1.0}) + "\n773869,far,1\nfar,away,2\n"
    edges, findings = read(tmp_path, text)
    assert as_graph(edges) == {(0, 1): 1.0}
    assert only(findings).level is Level.WARNING and only(findings).count == 2
    assert "far, away" in only(findings).where and only(findings).hint


def test_labels_of_a_matrix_without_readings_are_left_out_with_a_warning(tmp_path: Path) -> None:
    edges, findings = read(tmp_path, ",far,773869,767541\nfar,1,1,1\n773869,1,0,2\n767541,0,0,0\n")
    assert as_graph(edges) == {(0, 1): 2.0}
    assert only(findings).count == 4


def test_repeated_edges_count_once_and_contradictions_are_refused(tmp_path: Path) -> None:
    text = as_list({(0, 1): 1.0, (1, 2): 2.0})
    edges, findings = read(tmp_path, text + "\n773869,767541,1.0\n773869.0,767541,1\n")
    assert as_graph(edges) == {(0, 1): 1.0, (1, 2): 2.0}
    assert only(findings).level is Level.WARNING and only(findings).count == 2
    with pytest.raises(InputError, match=r"773869 to 767541 \(line 4\)"):
        read(tmp_path, text + "\n773869,767541,1.5\n")


def test_an_edge_to_itself_is_kept_with_a_note(tmp_path: Path) -> None:
    edges, findings = read(tmp_path, as_list({(0, 0): 1.0, (0, 1): 1.0}))
    assert len(edges) == 2
    assert only(findings).level is Level.NOTE and only(findings).count == 1


@pytest.mark.parametrize("column", ["weight", "distance"])
@pytest.mark.parametrize("number", ["-1", "far", "", "nan", "inf", "1e39", "1,5"])
def test_impossible_numbers_are_refused_with_their_line(column: str, number: str, tmp_path: Path) -> None:
    text = f'from,to,{column}\n773869,767541,1\n\n767541,717447,"{number}"\n'
    shown = rf"'{number}' is no number" if number in ("far", "1,5") else "767541 to 717447"
    with pytest.raises(InputError, match=rf"{shown} \(line 4\)"):
        read(tmp_path, text)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_numbers_may_have_decimal_commas_where_commas_divide_nothing(delimiter: str, tmp_path: Path) -> None:
    graph = {(0, 1): 1.5, (1, 2): 0.25}
    text = as_list(graph).replace(",", delimiter).replace(".", ",")
    edges, findings = read(tmp_path, text)
    assert as_graph(edges) == graph and not findings


@pytest.mark.parametrize("number", ["0", "1e-60"])
def test_a_weight_of_zero_is_refused_in_a_list(number: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\(line 2\)"):
        read(tmp_path, f"from,to,weight\n773869,767541,{number}\n")


@pytest.mark.parametrize("number", ["-1", "inf", "1e39", "far"])
def test_impossible_numbers_of_a_matrix_are_refused(number: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"773869 to 767541|line 2"):
        read(tmp_path, f",773869,767541\n773869,0,{number}\n767541,1,0\n")


@pytest.mark.parametrize("text", ["from,to,weight\n", "from,to\n", ",773869,767541\n773869,0,\n767541,0,nan\n"])
def test_a_file_without_an_edge_is_legal_but_warned_of(text: str, tmp_path: Path) -> None:
    edges, findings = read(tmp_path, text)
    assert len(edges) == 0
    assert only(findings).level is Level.WARNING


@pytest.mark.parametrize(
    "text",
    ["from,to,weight\nx,y,1\ny,773869,1\n", ",x,y\nx,0,1\ny,1,0\n", "x,y,z\n0,1,1\n1,0,1\n0,1,0\n"],
)
def test_ids_that_do_not_match_at_all_are_shown_side_by_side(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"name x, y.*the readings 773869"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a,b,c,d,e\n1,2,3,4,5\n", "no list of edges"),
        ("one,other,gap\n" + "773869,767541,1\n" * 6, "no columns are called from and to"),
        ("from,to,weight\n773869,767541\n", "line 2 has 2 cells"),
        ("from,to,weight\n,767541,1\n773869,,1\n", "line 2, 3"),
        ("0,1,0\n1,0,1\n0,1,0\n", "4 sensors"),
        (",773869,767541\n773869,0,1\n717447,1,0\n", "different sensors"),
        ("773869,773869\n0,1\n1,0\n", "twice"),
        ("word\n", "0 rows"),
    ],
)
def test_files_that_are_no_graph_say_why(text: str, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word) as caught:
        read(tmp_path, text)
    assert caught.value.hint


@pytest.mark.parametrize("shape", [(4,), (4, 3), (3, 3), (4, 4, 1)])
def test_arrays_that_are_no_matrix_of_the_sensors_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    np.save(tmp_path / "adj.npy", np.ones(shape))
    with pytest.raises(InputError):
        read_edges(tmp_path / "adj.npy", IDS, Findings())


def test_an_archive_of_two_matrices_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "adj.npz", one=np.eye(4), other=np.eye(4))
    with pytest.raises(InputError, match="one square array"):
        read_edges(tmp_path / "adj.npz", IDS, Findings())


def test_an_empty_frame_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        read_edges(pd.DataFrame(), IDS, Findings())


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(["e.csv", "e.txt", "e.npy", "e.npz", "e.pkl", "e.parquet", "e.csv.gz"]),
    content=st.binary(min_size=1, max_size=60)
    | st.text("0123456789.,;-\n\"' abfromtweigh773869", min_size=1).map(str.encode),
)
def test_any_bytes_give_edges_or_an_input_error(
    name: str, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(content)
    try:
        edges = read_edges(path, ("0", "1", "a", "773869"), Findings())
    except InputError:
        return
    assert isinstance(edges, Edges)
