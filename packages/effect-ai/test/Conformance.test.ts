import { type AdapterChecks, AdapterSuite } from "@allm/conformance"
import { AdapterError, Fake, Message } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { AiError, type Prompt } from "@effect/ai"
import { Duration, Effect, Option, Stream } from "effect"
import * as Scripted from "./scripted.ts"

const request = { method: "POST", url: "https://api.example", urlParams: [], hash: Option.none(), headers: {} } as const

const refusal = ({ retryAfter, status }: AdapterChecks.ScriptedFailure) =>
  new AiError.HttpResponseError({
    module: "Scripted",
    method: "streamText",
    reason: "StatusCode",
    request,
    response: {
      status,
      headers: retryAfter === undefined ? {} : { "retry-after": String(Duration.toSeconds(retryAfter)) }
    }
  })

const lastText = (prompt: Prompt.Prompt): string =>
  prompt.content.filter((message) => message.role === "user").at(-1)!.content
    .map((part) => part.type === "text" ? part.text : "").join("")

const theirs = (script: Scripted.Script) =>
  Effect.map(Scripted.make(script), ({ model, open }) => ({ adapter: EffectAi.fromLanguageModel(model), open }))

const says = (pieces: ReadonlyArray<string>) => Scripted.text(pieces)

AdapterSuite.run("EffectAi.fromLanguageModel", {
  scenarios: {
    text: (pieces) => theirs(() => Scripted.reads([...says(pieces), Scripted.finish("stop")])),
    echo: () => theirs(({ prompt }) => Scripted.reads([...says([lastText(prompt)]), Scripted.finish("stop")])),
    toolCalls: (calls) =>
      theirs(() => {
        const parts = calls.map(({ id, name, pieces }) => Scripted.call(id, name, JSON.parse(pieces.join("")), pieces))
        // The request declares no tools, so their framework refuses the read with the first whole call in it.
        return Stream.concat(
          Scripted.reads(parts.flatMap((call) => call.slice(0, -1))),
          Stream.fromIterable([...parts.flatMap((call) => call.slice(-1)), Scripted.finish("tool-calls")])
        )
      }),
    // As their providers do: the deltas come, and then the text cannot be parsed.
    brokenArguments: ({ id, name, pieces }) =>
      theirs(() =>
        Stream.concat(
          Scripted.reads(Scripted.call(id, name, {}, pieces).slice(0, -2)),
          Stream.fail(
            new AiError.MalformedOutput({ module: "Scripted", method: "streamText", description: "cannot be parsed" })
          )
        )
      ),
    failure: (failure) => theirs(() => Stream.fail(refusal(failure))),
    cut: (pieces) =>
      theirs(() =>
        Stream.concat(
          Scripted.reads(says(pieces).slice(0, -1)),
          Stream.fail(
            new AiError.HttpRequestError({ module: "Scripted", method: "streamText", reason: "Transport", request })
          )
        )
      ),
    slow: (pieces) =>
      theirs(() => Stream.concat(pieces.length === 0 ? Stream.empty : Scripted.reads(says(pieces)), Stream.never))
  }
})

const fakes = (pieces: ReadonlyArray<string>) => pieces.map(Fake.text)

const thereAndBack = (respond: Fake.Options["respond"]) =>
  Effect.gen(function*() {
    const { adapter, fake } = yield* Fake.make({ respond })
    const model = yield* EffectAi.makeLanguageModel(adapter)
    return { adapter: EffectAi.fromLanguageModel(model), open: fake.open }
  })

AdapterSuite.run("EffectAi.fromLanguageModel of EffectAi.makeLanguageModel", {
  scenarios: {
    text: (pieces) => thereAndBack(() => [...fakes(pieces), Fake.finish("stop")]),
    echo: () => thereAndBack(({ messages }) => [Fake.text(Message.toText(messages.at(-1)!)), Fake.finish("stop")]),
    toolCalls: (calls) =>
      thereAndBack(() => [
        ...calls.flatMap(({ id, name, pieces }) => pieces.map((delta) => Fake.toolCallDelta({ id, name, delta }))),
        Fake.finish("tool_calls")
      ]),
    brokenArguments: ({ id, name, pieces }) =>
      thereAndBack(() => [Fake.toolCall({ id, name, rawArguments: pieces.join("") }), Fake.finish("tool_calls")]),
    failure: (failure) => thereAndBack(() => [Fake.preflightError(new AdapterError.AdapterError(failure))]),
    cut: (pieces) => thereAndBack(() => [...fakes(pieces), Fake.error("network_error")]),
    slow: (pieces) => thereAndBack(() => [...fakes(pieces), Fake.delay("1 hour")])
  }
})
