import { Engine } from "@allm/core"
import { NodeContext } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Console, Effect, Option } from "effect"
import { fileURLToPath } from "node:url"
import * as Agent from "../src/internal/agent.ts"
import * as Models from "../src/internal/models.ts"

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/agents/${name}`, import.meta.url))

const refused = (name: string) => Effect.map(Effect.flip(Agent.load(fixture(name))), ({ detail }) => detail)

const engineOf = (
  name: string,
  model: string | undefined = undefined,
  variables: Record<string, string> = {}
) =>
  Effect.gen(function*() {
    const agent = yield* Agent.load(fixture(name))
    const chosen = yield* Models.resolve(Option.fromNullable(model))
    return yield* Effect.provide(Engine.Engine, Agent.engine(agent, chosen))
  }).pipe(
    Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables)))),
    Effect.provide(NodeContext.layer)
  )

const example = "\n  import { Engine } from \"@allm/core\"\n  export const instructions = \"Be brief.\"\n" +
  "  export default Engine.layer({ tools: [] })"

describe("agent", () => {
  describe("load", () => {
    it.effect("reads a module, TypeScript too", () =>
      Effect.gen(function*() {
        const { engine: _, ...agent } = yield* Agent.load(fixture("good.ts"))

        assert.deepStrictEqual(agent, {
          name: "good",
          file: fixture("good.ts"),
          instructions: "Be brief.",
          prompt: "Hello",
          suggestions: []
        })
      }))

    for (
      const [name, detail, isWrongUse] of [
        ["nowhere.ts", "there is no such file; write the path of an agent module.", true],
        ["", "it is no module; write the path of a .js or .ts file.", true],
        ["number.mjs", `its default export is no Layer but a number; write${example}`, true],
        ["none.mjs", `it has no default export; write${example}`, true],
        ["prompt.mjs", "prompt is an array, not a text; write export const prompt = \"…\"", true],
        ["throws.mjs", "it cannot be loaded: no luck\nat all", false],
        [
          "options.mjs",
          "it cannot be loaded: validation failed: invalid_options (1 error)\n" +
          "- $.maxTurns: write a positive whole number, not 0",
          false
        ]
      ] as const
    ) {
      it.effect(`refuses ${name || "a directory"}`, () =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(Agent.load(fixture(name)))

          assert.deepStrictEqual([error.detail, error.isWrongUse], [detail, isWrongUse])
        }))
    }

    it.effect("shows no stack of a module that cannot be read", () =>
      Effect.gen(function*() {
        const detail = yield* refused("syntax.mjs")

        assert.match(detail, /^it cannot be loaded: /)
        assert.notMatch(detail, /\n\s+at /)
      }))
  })

  describe("engine", () => {
    it.effect("runs on the model that is chosen, under its name", () =>
      Effect.gen(function*() {
        const engine = yield* engineOf("good.ts", "openai/gpt-x", { OPENAI_API_KEY: "sk" })

        assert.strictEqual(Agent.labelOf(engine), "openai/gpt-x")
        assert.deepStrictEqual(engine.tools.map(({ name }) => name), ["shout"])
      }))

    it.effect("runs on the embedded model only when that is asked for", () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(engineOf("good.ts"))

        assert.match(error.message, /^good: there is no model for it: set OPENAI_API_KEY, .* or --model demo/)
        assert.strictEqual(Agent.labelOf(yield* engineOf("good.ts", "demo")), "demo")
      }))

    it.effect("keeps a model of its own, and tells when another was asked for", () =>
      Effect.gen(function*() {
        const told: Array<string> = []
        const console = yield* Console.consoleWith(Effect.succeed)
        const listening = Effect.withConsole({
          ...console,
          error: (...words: ReadonlyArray<unknown>) => Effect.sync(() => void told.push(words.join(" ")))
        })

        const quiet = yield* listening(engineOf("own.mjs"))
        assert.strictEqual(Agent.labelOf(quiet), "fake/tiny")
        assert.deepStrictEqual(told, [])

        const loud = yield* listening(engineOf("own.mjs", "demo"))
        assert.strictEqual(Agent.labelOf(loud), "fake/tiny")
        assert.deepStrictEqual(told, ["own brings a model of its own, fake/tiny; demo is not used."])
      }))

    it.effect("names a service that is missing, and what else keeps a layer from being built", () =>
      Effect.gen(function*() {
        const missing = yield* Effect.flip(engineOf("service.mjs", "demo"))
        const broken = yield* Effect.flip(engineOf("broken.mjs", "demo"))
        const empty = yield* Effect.flip(engineOf("empty.mjs", "demo"))

        assert.include(missing.message, "the service my/Database is missing; provide it in the agent's own layer")
        assert.include(broken.message, "its layer cannot be built: the disk is full")
        assert.include(empty.message, `its default export is a Layer that provides no Engine; write${example}`)
      }))
  })
})
