"""docs/onnx.md says what the importer has."""
import onnx_page


def test_page_is_what_the_importer_has():
    assert (onnx_page.ROOT / "docs" / "onnx.md").read_text() == onnx_page.page(), "write it again: onnx_page.py > docs/onnx.md"
