/* Search of a site opened as a file: browsers start no worker from a file, so a hidden frame runs
   its script instead. Served pages use the browser's own workers. */
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.ready = new Promise(resolve => (this.start = resolve))
      window.addEventListener("message", event => {
        if (event.source !== frame.contentWindow) return
        const copy = new MessageEvent("message", {data: event.data})
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      const begin = () => {
        document.body.appendChild(frame)
        const inside = frame.contentWindow
        inside.document.open()
        inside.document.write(`<!DOCTYPE html><script>
          window.postMessage = message => parent.postMessage(message, "*")
          window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() =>
            new Promise(resolve => {
              const script = document.createElement("script")
              script.src = url
              script.onload = resolve
              document.head.appendChild(script)
            })), Promise.resolve())
        <\/script><script src="${url}"><\/script>`)
        inside.document.close()
        inside.addEventListener("load", () => this.start(inside))
      }
      document.body ? begin() : document.addEventListener("DOMContentLoaded", begin)
    }
    postMessage(data) {
      this.ready.then(inside => inside.dispatchEvent(new MessageEvent("message", {data})))
    }
    terminate() {}
  }
