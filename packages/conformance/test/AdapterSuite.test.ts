import { AdapterSuite } from "@allm/conformance"
import { Adapter, AdapterError, Fake } from "@allm/core"
import { Effect, Stream } from "effect"
import { lastUserText, type Model, scenarios } from "./model.ts"

const fake = (respond: Fake.Options["respond"]) =>
  Effect.map(Fake.make({ respond }), (made) => ({ adapter: made.adapter, open: made.fake.open }))

const says = (pieces: ReadonlyArray<string>) => pieces.map(Fake.text)

AdapterSuite.run("Fake", {
  scenarios: {
    text: (pieces) => fake(() => [...says(pieces), Fake.finish("stop")]),
    echo: () => fake((request) => [Fake.text(lastUserText(request)), Fake.finish("stop")]),
    toolCalls: (calls) =>
      fake(() => [
        ...calls.flatMap(({ id, name, pieces }) => pieces.map((delta) => Fake.toolCallDelta({ id, name, delta }))),
        Fake.finish("tool_calls")
      ]),
    brokenArguments: ({ id, name, pieces }) =>
      fake(() => [Fake.toolCall({ id, name, rawArguments: pieces.join("") }), Fake.finish("tool_calls")]),
    failure: (failure) => fake(() => [Fake.preflightError(new AdapterError.AdapterError(failure))]),
    cut: (pieces) => fake(() => [...says(pieces), Fake.error("network_error")]),
    slow: (pieces) => fake(() => [...says(pieces), Fake.delay("1 hour")])
  }
})

AdapterSuite.run("Fake, as a layer, with a text only", {
  scenarios: {
    text: (pieces) => Fake.layer({ respond: () => [...says(pieces), Fake.finish("stop")] })
  }
})

// Counts the answers that are being given, as a server counts its connections.
const counted = (adapterOf: (model: Model, connections: Connections) => Adapter.Service) => (model: Model) =>
  Effect.sync(() => {
    const connections = new Connections()
    return { adapter: adapterOf(model, connections), open: Effect.sync(() => connections.open) }
  })

class Connections {
  open = 0
}

AdapterSuite.run("Adapter.fromStream", {
  scenarios: scenarios(counted((model, connections) =>
    Adapter.fromStream((request) =>
      Stream.suspend(() => {
        const { end, reads } = model(request)
        connections.open++
        const events = Stream.flatMap(Stream.fromIterable(reads), Stream.fromIterable)
        const last = end === "done" ? Stream.empty : end === "silent" ? Stream.never : Stream.fail(end)
        return Stream.ensuring(Stream.concat(events, last), Effect.sync(() => connections.open--))
      })
    )
  ))
})

AdapterSuite.run("Adapter.fromAsyncIterable", {
  live: true,
  scenarios: scenarios(counted((model, connections) =>
    Adapter.fromAsyncIterable(
      async function*(request, signal) {
        const { end, reads } = model(request)
        connections.open++
        try {
          for (const read of reads) {
            await Promise.resolve()
            yield read
          }
          if (end === "silent") {
            await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
          }
          if (end !== "done") throw end
        } finally {
          connections.open--
        }
      },
      (error) =>
        error instanceof AdapterError.AdapterError ? error : new AdapterError.AdapterError({ reason: "unknown" })
    )
  ))
})
