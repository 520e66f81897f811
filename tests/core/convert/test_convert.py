"""Document ↔ Kubernetes object: text by text, what must survive (rules A1, K1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl_core.convert import CannotConvert, convert_text
from noetl_core.convert.lines import comments_of
from noetl_core.load import NAME_ANNOTATION, Form, digest, load

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
STEP = "workflow:\n  - step: a\n    tool: {kind: noop}\n"


def to_resource(text: str) -> str:
    made = convert_text(text, Form.RESOURCE)
    assert made.notes == ()
    return made.text


def to_document(text: str) -> str:
    made = convert_text(text, Form.DOCUMENT)
    assert made.notes == ()
    return made.text


def assert_same(before: str, after: str) -> None:
    """Equal playbooks and digests; no comment lost."""
    for old, new in zip(load(before), load(after), strict=True):
        assert old.playbook is not None
        assert new.playbook == old.playbook
        assert digest(new.playbook) == digest(old.playbook)
        assert old.root is not None
        assert new.root is not None
    old_root, new_root = load(before)[0].root, load(after)[0].root
    assert old_root is not None
    assert new_root is not None
    if len(load(before)) == 1:
        assert sorted(comments_of(before, old_root)) == sorted(comments_of(after, new_root))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_A1_every_example_goes_there_and_back_unchanged(path: Path) -> None:
    text = path.read_text()
    form = load(text)[0].form
    other = Form.DOCUMENT if form is Form.RESOURCE else Form.RESOURCE
    there = convert_text(text, other)
    assert there.notes == ()
    assert load(there.text)[0].form is other
    assert_same(text, there.text)
    assert convert_text(there.text, form).text == text


def test_A1_path_version_and_description_move_below_spec() -> None:
    text = f"metadata:\n  name: x\n  path: a/b\n  version: 1.0\n  description: d\n\n{STEP}"
    assert to_resource(text) == (
        "apiVersion: noetl.io/v1\nkind: Playbook\nmetadata:\n  name: x\nspec:\n"
        "  metadata:\n    path: a/b\n    version: 1.0\n    description: d\n\n"
        "  workflow:\n    - step: a\n      tool: {kind: noop}\n"
    )


NAMED = "metadata:\n  name: x\n"
ROUND_TRIPS = {
    "plain": f"{NAMED}\n{STEP}",
    "comments everywhere": (
        "# head\n\n# about metadata\nmetadata: # m\n  # above name\n  name: x # n\n  # above path\n"
        f"  path: a/b # p\n  # below\n\n# about the steps\n{STEP}    # deep\n  # less deep\n# end\n"
    ),
    "no line break at the end": f"{NAMED}{STEP}".rstrip("\n"),
    "CRLF": f"metadata:\n  name: x\n  path: p\n\n{STEP}".replace("\n", "\r\n"),
    "four spaces": (
        "metadata:\n    name: x\n    path: p\nworkflow:\n    - step: a\n      tool: {kind: noop}\n"
    ),
    "list not indented": "metadata:\n  name: x\nworkflow:\n- step: a\n  tool: {kind: noop}\n",
    "block scalars": (
        "metadata:\n  name: x\n  description: |2\n      two more\n    text\n"
        "workload:\n  a: |\n    # no comment\n\n    # nor this\n\n# a comment\n"
        "  b: >-\n    folded\n      more\n\n    text\n  c: |+\n    keep\n\n\n"
        f"{STEP}    # end\n"
    ).replace("\n# a comment\n", "\n"),
    "hash in a block scalar that ends a section": (
        f"{NAMED}workload:\n  a: |\n    x\n    # inside\n# outside\n{STEP}"
    ),
    "blank lines of blanks": f"{NAMED}workload:\n  a: |\n    x\n     \n    y\n\n{STEP}",
    "quotes over lines": (
        f'{NAMED}workload:\n  a: "one\n\n    two # no"\n  b: plain\n    goes on\n{STEP}'
    ),
    "flow over lines": f"{NAMED}workload: {{\n  a: [1, # one\n    2],\n  b: 3\n}}\n{STEP}",
    "anchors across sections": (
        "metadata:\n  name: x\nworkload:\n  base: &base {a: 1}\n  other:\n    <<: *base\n    b: 2\n"
        "workflow:\n  - step: a\n    tool:\n      kind: noop\n      result: *base\n"
    ),
    "separate line breaks": f"{NAMED}workload:\n  a: |\n    x\u2028    y\n{STEP}",
    "wide characters": f"# 日本\nmetadata:\n  name: x\nworkload:\n  é: '日本' # ü\n{STEP}",
    "start marker": f"---\n# head\nmetadata:\n  name: x\n{STEP}",
    "end marker": f"%YAML 1.1\n---\nmetadata:\n  name: x\n{STEP}...\n# after\n",
    "several documents": f"{NAMED}{STEP}--- # two\n# second\nmetadata:\n  name: z\n{STEP}---\n",
    "labels and annotations": (
        f"metadata:\n  name: x\n  path: p\n  labels: {{a: b}}\n  annotations:\n    c: d # e\n{STEP}"
    ),
    "a name that Kubernetes does not take": (
        f"metadata:\n  name: My Playbook # n\n  path: p\n{STEP}"
    ),
}


@pytest.mark.parametrize("text", ROUND_TRIPS.values(), ids=list(ROUND_TRIPS))
def test_A1_a_document_comes_back_as_it_was(text: str) -> None:
    there = to_resource(text)
    assert all(each.form is Form.RESOURCE for each in load(there))
    assert_same(text, there)
    assert to_document(there) == text


def test_K1_a_name_that_is_no_kubernetes_name_is_kept_as_an_annotation() -> None:
    there = to_resource(f"metadata:\n  name: 'My: Play' # mine\n{STEP}")
    assert "  name: my-play # mine\n" in there.replace("my--play", "my-play")
    assert f'{NAME_ANNOTATION}: "My: Play"' in there
    back = to_document(there)
    assert load(back)[0].playbook == load(there)[0].playbook
    assert NAME_ANNOTATION not in back


def test_K1_annotations_that_are_there_keep_their_place() -> None:
    text = (
        f"metadata:\n  name: A B\n  annotations:\n    # one\n    x: z\n  labels: {{a: b}}\n{STEP}"
    )
    there = to_resource(text)
    assert_same(text, there)
    assert to_document(there) == text


def test_A1_a_header_in_a_document_is_kept_and_made_right() -> None:
    text = f"apiVersion: noetl.io/v2 # old\nkind: Playbook\nmetadata:\n  name: x\n{STEP}"
    there = to_resource(text)
    assert there.startswith("apiVersion: noetl.io/v1 # old\nkind: Playbook\nmetadata:\n")


def test_A1_comments_on_the_header_of_a_resource_are_kept() -> None:
    text = (
        "# head\napiVersion: noetl.io/v1 # api\n# above kind\nkind: Playbook # kind\n"
        "metadata:\n  name: x\n# above spec\nspec: # the spec\n  # above metadata\n"
        "  metadata: # inner\n    path: p # path\n  # above the steps\n"
        "  workflow:\n    - step: a\n      tool: {kind: noop}\n# end\n"
    )
    back = to_document(text)
    assert_same(text, back)
    assert load(back)[0].form is Form.DOCUMENT


def test_A1_metadata_in_flow_style_is_opened_and_the_rest_stays() -> None:
    text = (
        f"# head\nmetadata: {{name: x, path: 'a, b', labels: {{k: v}}}} # why\n\n{STEP}    # deep\n"
    )
    there = to_resource(text)
    assert_same(text, there)
    assert (
        "metadata: # why\n  name: x\n  labels: {k: v}\nspec:\n  metadata:\n    path: 'a, b'\n"
        in there
    )
    assert "# deep" in there


def test_A1_sections_before_metadata_keep_their_order() -> None:
    text = f"# head\n\n# load\nworkload: {{a: 1}}\n# meta\nmetadata:\n  name: x\n{STEP}"
    there = to_resource(text)
    assert_same(text, there)
    assert there.index("workload:") < there.index("workflow:")
    assert there.startswith("# head\n\napiVersion:")


@pytest.mark.parametrize(
    "text",
    [
        "{metadata: {name: x}, workflow: [{step: a, tool: {kind: noop}}]} # flow\n",
        f"  metadata:\n    name: x\n  # deep\n  {STEP.replace(chr(10), chr(10) + '  ').rstrip()}\n",
        f"metadata: # m\n  name: x\n<<: {{workload: {{a: 1}}}}\n{STEP}",
        "? metadata # k\n: {name: x}\n? workflow\n: [{step: a, tool: {kind: noop}}]\n",
        "--- {metadata: {name: x}, workload: {t: '1e5', u: 'yes', v: \"a\\nb \"}, workflow: "
        "[{step: a, tool: {kind: noop}}]}\n",
    ],
    ids=["flow root", "indented root", "merge at the root", "explicit keys", "flow after marker"],
)
def test_A1_what_can_not_be_moved_is_written_anew_with_its_comments(text: str) -> None:
    there = convert_text(text, Form.RESOURCE)
    assert there.notes
    assert_same(text, there.text)
    assert_same(there.text, convert_text(there.text, Form.DOCUMENT).text)


def test_A1_what_only_the_cluster_uses_is_left_out_and_said() -> None:
    resource = to_resource(f"metadata:\n  name: x\n{STEP}")
    live = (
        resource.replace("  name: x\n", "  name: x\n  uid: u\n  generation: 3\n") + "status: {}\n"
    )
    made = convert_text(live, Form.DOCUMENT)
    assert made.notes == (
        "left out, since only the cluster uses it: status, metadata.uid, metadata.generation",
    )
    assert load(made.text)[0].playbook == load(resource)[0].playbook


@pytest.mark.parametrize("form", list(Form))
@pytest.mark.parametrize(
    "text", ["", "a: [", "metadata: {name: x}\n", f"{STEP}vars: {{}}\n", "- 1\n"]
)
def test_what_is_no_playbook_is_refused_with_places(text: str, form: Form) -> None:
    with pytest.raises(CannotConvert) as refused:
        convert_text(text, form)
    assert refused.value.problems
    assert all(problem.line >= 1 for problem in refused.value.problems)


def test_problems_of_a_later_document_have_their_own_lines() -> None:
    with pytest.raises(CannotConvert) as refused:
        convert_text(f"metadata:\n  name: x\n{STEP}---\nmetadata:\n  name: y\n", Form.RESOURCE)
    assert refused.value.problems[0].line >= 7


def test_K2_letters_that_kubectl_reads_as_booleans_get_quotes_in_a_resource() -> None:
    text = (
        "metadata: {name: p}\nworkload:\n  n: 3 # n\n  list: [y, &a N, *a, yes_]\n"
        "workflow:\n- step: y\n  tool: {kind: noop, result: {Y: n}}\n"
    )
    converted = convert_text(text, Form.RESOURCE)
    assert converted.notes == ()
    assert '"n": 3 # n' in converted.text
    assert '["y", &a "N", *a, yes_]' in converted.text
    assert 'step: "y"' in converted.text
    assert '{"Y": "n"}' in converted.text
    (before,), (after,) = load(text), load(converted.text)
    assert after.problems == []
    assert after.playbook == before.playbook
