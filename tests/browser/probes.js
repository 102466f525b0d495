// What runs inside the page: put there before JupyterLab starts, called by notebook_page.py and latency.py.
// JupyterLab is asked through window.jupyterapp; canvases are found through open shadow roots.

// An error that another one caused says only what failed, not why.
addEventListener("unhandledrejection", ({reason}) => {
    if (reason?.cause) console.error(`caused by: ${reason.cause?.stack ?? reason.cause}`);
});

window.probes = (() => {
    const panel = () => window.jupyterapp?.shell?.currentWidget;
    const kernel = () => panel()?.sessionContext?.session?.kernel;
    const execute = (command, args) => window.jupyterapp.commands.execute(command, args);
    const frame = () => new Promise(requestAnimationFrame);

    // True when it is done in time; what it rejects with is thrown.
    const within = (seconds, done) => Promise.race([
        done.then(() => true), new Promise(resolve => setTimeout(() => resolve(false), 1e3 * seconds)),
    ]);

    const ready = name => panel()?.context?.path === name && kernel()?.status === "idle";
    // What goes wrong in a widget's callback is written by the kernel, but belongs to no cell that could show it.
    function listen() {
        panel().sessionContext.iopubMessage.connect((_, {header, parent_header, content}) => {
            const wrong = header.msg_type === "error" || header.msg_type === "stream" && content.name === "stderr";
            if (wrong && parent_header.msg_type !== "execute_request")
                console.error(`in the kernel: ${content.text ?? content.traceback.join("\n")}`);
        });
    }
    const runAll = seconds => within(seconds, execute("notebook:run-all-cells"));
    async function runCell([source, seconds]) {
        const notebook = panel().content;
        notebook.activeCellIndex = notebook.widgets.length - 1;
        await execute("notebook:insert-cell-below");
        notebook.activeCell.model.sharedModel.setSource(source);
        return within(seconds, execute("notebook:run-cell"));
    }
    const cells = () => panel().content.widgets.filter(cell => cell.model.type === "code").map(
        cell => ({ran: cell.model.executionCount !== null, outputs: cell.model.outputs.toJSON()}));
    const showing = mime => panel().content.widgets.flatMap((cell, i) =>
        (cell.model.outputs?.toJSON() ?? []).some(({data}) => data && mime in data && "text/plain" in data) ? [i] : []);
    async function python(expression) {
        const asked = {code: "", silent: true, store_history: false, user_expressions: {asked: expression}};
        return (await kernel().requestExecute(asked).done).content.user_expressions.asked;
    }

    // The same canvas as one that can be read, in its own size or as so many pixels on a grid.
    function readable(canvas, width = canvas.width, height = canvas.height) {
        const context = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
        context.imageSmoothingEnabled = false;
        context.drawImage(canvas, 0, 0, width, height);
        return new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    }
    async function picture(canvas) {
        const pixels = readable(canvas);
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", pixels));
        const text = Array.from(digest, byte => byte.toString(16).padStart(2, "0")).join("");
        return [canvas.width, canvas.height, new Set(pixels).size, text];
    }

    // What tells one drawing from the next: the canvas's own count, or 576 of its pixels.
    const mark = canvas => canvas.dataset.drawn ?? (canvas.width ? readable(canvas, 24, 24).join() : "");
    const isDrawn = canvas => canvas.dataset.drawn !== undefined
        || canvas.width > 0 && new Set(readable(canvas)).size > 1;

    // From the next key to the frame in which all canvases differ: milliseconds, or null when it takes too long.
    function untilChanged([canvases, seconds]) {
        window.probes.change = new Promise(resolve => addEventListener("keydown", async event => {
            const before = canvases.map(mark);
            while (canvases.some((canvas, i) => mark(canvas) === before[i])) {
                await frame();
                if (performance.now() - event.timeStamp > 1e3 * seconds) return resolve(null);
            }
            resolve(performance.now() - event.timeStamp);
        }, {capture: true, once: true}));
    }

    function all(selector, root = document) {
        const shadows = [...root.querySelectorAll("*")].map(one => one.shadowRoot).filter(Boolean);
        return [...root.querySelectorAll(selector), ...shadows.flatMap(shadow => all(selector, shadow))];
    }
    // From running a cell, or all if it is empty, to so many more drawn canvases: milliseconds, or null if it takes too long.
    async function untilDrawn([source, selector, count, seconds]) {
        const drawn = () => all(selector).filter(isDrawn).length;
        const wanted = drawn() + count, start = performance.now();
        const done = source ? runCell([source, seconds]) : runAll(seconds);
        while (drawn() < wanted) {
            await frame();
            if (performance.now() - start > 1e3 * seconds) return null;
        }
        const taken = performance.now() - start;
        await done;
        return taken;
    }

    return {panel, kernel, execute, ready, listen, runAll, runCell, cells, showing, python, picture, untilChanged, untilDrawn, all, change: null};
})();
