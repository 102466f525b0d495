"""Small notebooks: a slider and a canvas, which prove what other tests rely on, and charts with a bad connection."""

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

WAVES = """
import bokeh, holoviews as hv, numpy as np
from IPython.display import display
from workbench.lab.chart_part import ChartPage, chart

def wave(number):
    x = np.linspace(0, 6, 4 * number + 3)
    marks = hv.Scatter((x, np.cos(number * x))).opts(size=number)
    return (hv.Curve((x, np.sin(number * x))) * marks).opts(width=300, height=150, title=f"wave {number}", toolbar=None)

def told():
    plot = view.chart.plot.state
    lines = [[source.data[axis].tolist() for axis in "xy"] for source in (each.data_source for each in plot.renderers)]
    return [plot.title.text, plot.x_range.end, plot.y_range.start, [each.glyph.id for each in plot.renderers], lines]

view = chart(wave(1))
"""

# From now on every third message of the chart is lost, whatever it is; of the last change, everything but the repetition.
LOSES_MESSAGES = """
sent, lost, send = 0, 0, view._send

def lossy(message, buffers=None):
    global sent, lost
    sent += 1
    if sent % 3 == 0 or lose_all:
        lost += 1
    else:
        send(message, buffers)

lose_all, view._send = False, lossy
"""

# A chart whose script takes longer than anywidget waits for, and one that Python sends nothing to meanwhile.
LOADS_SLOWLY = """
script = ChartPage._esm
ChartPage._esm = "await new Promise((loaded) => setTimeout(loaded, 3500));\\n" + script
view, quiet = chart(wave(1)), chart(wave(1))
ChartPage._esm = script
"""
