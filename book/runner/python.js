// Python for a page: start, run, stop. Whoever has a better Python puts it in here.
export class Python {
  // files: the addresses of what Python needs; worker: that of worker.js
  constructor(files, worker) {
    Object.assign(this, { files, address: worker });
  }

  // Resolves when Python is ready; told(bytes) follows what is loaded.
  start(told = () => null) {
    this.ready ??= new Promise((resolve, reject) => {
      this.worker = new Worker(this.address, { type: "module" });
      this.worker.onerror = (event) => this.fail(event.message || "the worker cannot start");
      this.refuse = reject;
      this.worker.onmessage = ({ data }) => {
        if (data.module) this.module = data.module; // compiled once for a page
        else if (data.ready) resolve();
        else if (data.failed) this.fail(data.failed);
        else if (data.result) this.resolve(data.result);
        else told(data);
      };
      this.worker.postMessage({ start: { files: this.files, module: this.module } });
    });
    return this.ready;
  }

  // Resolves with {outputs, error}; after so many seconds it stops.
  async run(sources, cell, seconds) {
    await this.start();
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.fail(`stopped after ${seconds} s`), 1000 * seconds);
      this.resolve = (result) => { clearTimeout(late); resolve(result); };
      this.refuse = (error) => { clearTimeout(late); reject(error); };
      this.worker.postMessage({ run: { sources, cell } });
    });
  }

  // Ends whatever runs; the next start begins anew.
  stop() {
    this.fail("stopped");
  }

  fail(reason) {
    this.worker?.terminate();
    this.worker = this.ready = null;
    this.refuse?.(new Error(reason));
  }
}
