// Search without a server: browsers refuse workers from file://, so the search worker runs in a hidden frame.
// The name keeps the theme from loading its own polyfill from the network.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.body.appendChild(Object.assign(document.createElement("iframe"), { hidden: true }))
      const script = frame.contentDocument.createElement("script")
      this.frame = frame.contentWindow
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.loaded = new Promise((resolve) => { script.onload = resolve })
      script.src = url
      frame.contentDocument.body.append(script)
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {}
  }
}
