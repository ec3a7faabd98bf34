// The smallest program with a tool, for the price of importing and bundling ALLM. Takes the built package.
import * as Adapter from "@allm/core/Adapter"
import * as Allm from "@allm/core/Allm"
import * as Engine from "@allm/core/Engine"
import * as Tool from "@allm/core/Tool"
import * as ToolCall from "@allm/core/ToolCall"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const echo = Tool.make("echo", {
  description: "Gives back its input",
  parameters: { text: Schema.String },
  handler: ({ text }) => ({ text })
})

const toolCall = ToolCall.make({ id: "1", name: "echo", arguments: { text: "hi" } })

const model = Adapter.make((request, emit) =>
  emit(
    request.messages.length === 1
      ? [{ _tag: "ToolCallCompleted", toolCall }, {
        _tag: "MessageCompleted",
        finishReason: "tool_calls",
        metadata: {}
      }]
      : [{ _tag: "TextDelta", delta: "done" }, { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]
  )
)

const engine = Layer.provide(Engine.layer({ tools: [echo] }), Adapter.layer(model))

export const main = () =>
  Effect.runPromise(
    Allm.chat("go").pipe(Effect.map(({ finalResponse }) => finalResponse.outputText), Effect.provide(engine))
  )
