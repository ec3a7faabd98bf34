import { Adapter, Allm, Message, Request, Tool } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { LanguageModel, Telemetry, Tool as AiTool } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { askTheirs } from "./bench.ts"
import * as Scripted from "./scripted.ts"

const weather = Tool.make("get_weather", {
  description: "Current weather of a city",
  parameters: { city: Schema.String },
  handler: () => ({ sky: "clear" })
})

const hello = Request.make({ messages: [Message.user("Hello")] })
const answer: ReadonlyArray<Scripted.Part> = [...Scripted.text(["Hi", "."]), Scripted.finish("stop")]

describe("EffectAi.fromLanguageModel", () => {
  describe("responseFormat", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "number" } },
      required: ["a"],
      additionalProperties: false
    }
    const responseFormat = { type: "json_schema", name: "answer", schema, strict: true } as const
    const format = (options: LanguageModel.ProviderOptions | undefined) =>
      options?.responseFormat.type === "json"
        ? [options.responseFormat.objectName, AiTool.getJsonSchemaFromSchemaAst(options.responseFormat.schema.ast)]
        : undefined

    it.effect("asks for an object of the very schema", () =>
      Effect.gen(function*() {
        const { asked, response } = yield* askTheirs(
          [...Scripted.text(["{\"a\":", "1}"]), Scripted.finish("stop")],
          { ...hello, responseFormat }
        )

        assert.deepStrictEqual(format(asked[0]), ["answer", schema as never])
        assert.strictEqual(response.outputText, "{\"a\":1}")
        assert.deepStrictEqual(response.usage, Scripted.usage)
      }))

    it.effect("asks for any object", () =>
      Effect.gen(function*() {
        const { asked } = yield* askTheirs(answer, { ...hello, responseFormat: { type: "json_object" } })

        assert.deepStrictEqual(format(asked[0]), ["json", { type: "object" } as never])
      }))

    it.effect("takes a schema without a type", () =>
      Effect.gen(function*() {
        const untyped = { allOf: [schema], $comment: "no type here" }
        const { asked } = yield* askTheirs(answer, { ...hello, responseFormat: { ...responseFormat, schema: untyped } })

        assert.strictEqual(JSON.stringify(format(asked[0])), JSON.stringify(["answer", untyped]))
      }))

    for (const [what, said] of [["not JSON", "Sorry."], ["not of the schema", "[]"], ["empty", ""]] as const) {
      it.effect(`gives an answer that is ${what}, for the loop to judge`, () =>
        Effect.gen(function*() {
          const { error, response } = yield* askTheirs(
            [...Scripted.text([said]), Scripted.finish("stop")],
            { ...hello, responseFormat }
          )

          assert.strictEqual(error, undefined)
          assert.strictEqual(response.outputText, said)
        }))
    }

    it.effect("leaves calls to the loop", () =>
      Effect.gen(function*() {
        const turns = [
          [...Scripted.call("c0", "get_weather", { city: "Oslo" }), Scripted.finish("tool-calls")],
          [...Scripted.text(["{\"a\":1}"]), Scripted.finish("stop")]
        ]
        const { asked, model } = yield* Scripted.make(() => Scripted.reads(turns.shift() ?? []))
        const result = yield* Effect.provide(
          Allm.chat("Weather?", { responseFormat }),
          EffectAi.engine({ tools: [weather] }).pipe(Layer.provide(Layer.succeed(LanguageModel.LanguageModel, model)))
        )

        assert.strictEqual(result.steps[0]?.toolResults[0]?.content, "{\"sky\":\"clear\"}")
        assert.strictEqual(result.finalResponse.outputText, "{\"a\":1}")
        assert.deepStrictEqual(asked.map((options) => format(options)?.[0]), ["answer", "answer"])
      }))

    it.effect("does not take away the span transformer of the caller, nor of the layer", () =>
      Effect.gen(function*() {
        const heard: Array<string> = []
        const { model } = yield* Scripted.make(() => Scripted.reads(answer))
        const hear = (name: string) => Layer.succeed(Telemetry.CurrentSpanTransformer, () => void heard.push(name))
        const request = { ...hello, responseFormat }
        const generate = Effect.flatMap(Adapter.Adapter, (adapter) => adapter.generate(request, () => Effect.void))
        const layer = Layer.provide(
          EffectAi.layer(),
          Layer.merge(Layer.succeed(LanguageModel.LanguageModel, model), hear("layer"))
        )
        yield* Effect.provide(generate, layer)
        yield* generate.pipe(Effect.provide(hear("caller")), Effect.provide(layer))

        assert.deepStrictEqual(heard, ["layer", "caller"])
      }))
  })
})
