// The kernels in WebAssembly: arrays in their memory, and launches, whose arguments are checked against the declarations
// of the sources (`workbench/declarations.py`). A machine has the kernels of one precision, and a memory of its own.

const TYPES = {
  u8: Uint8Array, u16: Uint16Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, u64: BigUint64Array,
  float: Float32Array, double: Float64Array,
};
const ALIGNED = 16; // bytes
const PAGE = 65536; // bytes

// An array in the memory of a machine. Its values are looked up each time: a memory that grows is another buffer.
class Row {
  constructor(machine, type, at, length) {
    Object.assign(this, { machine, type, at, length });
  }

  get values() {
    return new TYPES[this.type](this.machine.memory.buffer, this.at, this.length);
  }

  // A copy of numbers of 64 bits that are below 2^31.
  toInt32() {
    const halves = new Int32Array(this.machine.memory.buffer, this.at, 2 * this.length);
    const numbers = new Int32Array(this.length);
    for (let place = 0; place < numbers.length; place++) numbers[place] = halves[2 * place];
    return numbers;
  }

  number(place) {
    return Number(this.values[place]);
  }
}

export class Machine {
  // The machine for positions of this type, with the kernels of a compiled module.
  static async of(module, declared, real = "float") {
    return new Machine(await WebAssembly.instantiate(module), declared, real);
  }

  constructor({ exports }, declared, real) {
    const variant = { float: "f32_3d", double: "f64_3d" }[real];
    Object.assign(this, { exports, declared, real, variant, memory: exports.memory, free: exports.__heap_base.value });
    exports._initialize();
  }

  // A new array, which is valid until the end of the surrounding `scope`: of so many zeros, or of these values.
  array(type, given) {
    const named = type === "real" ? this.real : type;
    const length = given.length ?? given;
    const at = Math.ceil(this.free / ALIGNED) * ALIGNED;
    this.free = at + length * TYPES[named].BYTES_PER_ELEMENT;
    const missing = this.free - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / PAGE));
    const row = new Row(this, named, at, length);
    if (given.length === undefined) new Uint8Array(this.memory.buffer, at, this.free - at).fill(0);
    else row.values.set(given);
    return row;
  }

  // The numbers from 0 on.
  places(length) {
    const row = this.array("i32", length);
    const { values } = row;
    for (let place = 0; place < length; place++) values[place] = place;
    return row;
  }

  scope(work) {
    const before = this.free;
    try {
      return work();
    } finally {
      this.free = before;
    }
  }

  // Run so many work items of a kernel. Whole numbers of 64 bits may be given as plain ones.
  launch(name, items, ...given) {
    const parameters = this.declared[name];
    if (parameters?.length !== given.length + 1) throw new Error(`${name}: ${given.length + 1} arguments`);
    const converted = [items, ...given].map((value, place) => {
      const [type, pointer] = parameters[place];
      if (!pointer) return type === "i64" ? BigInt(value) : Number(value);
      if (value.machine !== this || value.type !== (type === "real" ? this.real : type))
        throw new Error(`${name}: argument ${place + 1} must be an array of ${type}; got ${value.type}`);
      return value.at;
    });
    if (items > 0) this.exports[`${name}_${this.variant}`](...converted);
  }
}
