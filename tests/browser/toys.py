"""Small notebooks that prove what the other tests rely on: a slider, a canvas that draws bytes."""

SLIDER_AND_CANVAS = r'''
import anywidget, ipywidgets, numpy as np, traitlets

class Canvas(anywidget.AnyWidget):
    """Grey values; `data-drawn` counts when asked to."""
    _esm = """
    function render({model, el}) {
        const canvas = document.createElement("canvas");
        canvas.className = model.get("name");
        el.append(canvas);
        function draw() {
            const data = model.get("pixels"), side = Math.sqrt(data.byteLength);
            const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
            canvas.width = canvas.height = side;
            const context = canvas.getContext("2d"), image = context.createImageData(side, side);
            const colours = new Uint32Array(image.data.buffer);
            for (let i = 0; i < bytes.length; i++) colours[i] = 0xff000000 | bytes[i] * 0x010101;
            context.putImageData(image, 0, 0);
            if (model.get("counts")) canvas.dataset.drawn = 1 + Number(canvas.dataset.drawn ?? 0);
        }
        draw();
        model.on("change:pixels", draw);
    }
    export default { render };
    """
    name = traitlets.Unicode("toy").tag(sync=True)
    counts = traitlets.Bool(True).tag(sync=True)
    pixels = traitlets.Bytes().tag(sync=True)

def toy(side=128, canvases=1, counts=True):
    base = np.random.default_rng(0).integers(0, 256, (side, side), dtype=np.uint8)
    slider = ipywidgets.IntSlider(description="Bound", max=100)
    panes = [Canvas(pixels=base.tobytes(), counts=counts) for _ in range(canvases)]
    button = ipywidgets.Button(description="Start again")
    button.on_click(lambda _: setattr(slider, "value", 0))
    def show(change):
        for pane in panes:
            pane.pixels = (base + np.uint8(change.new)).tobytes()
    slider.observe(show, "value")
    return ipywidgets.VBox([slider, button, ipywidgets.HBox(panes)])
'''
