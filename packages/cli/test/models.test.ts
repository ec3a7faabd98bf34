import { Adapter, Allm, Engine } from "@allm/core"
import { HttpClient, type HttpClientRequest, HttpClientResponse } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option } from "effect"
import * as Models from "../src/internal/models.ts"

const variables = (variables: Record<string, string>) =>
  Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))

const keys = { OPENAI_API_KEY: "sk-1", ANTHROPIC_API_KEY: "sk-ant-1", GEMINI_API_KEY: "g-1" }

const resolve = (asked: string | undefined, environment: Record<string, string> = {}) =>
  Models.resolve(Option.fromNullable(asked)).pipe(variables(environment))

const told = (asked: string | undefined, environment: Record<string, string> = {}) =>
  Effect.map(Effect.flip(resolve(asked, environment)), ({ message }) => message)

const named = (asked: string | undefined, environment: Record<string, string> = {}) =>
  Effect.map(resolve(asked, environment), ({ label, origin }) => [label, origin])

/** The request that a model makes when it is asked for something. */
const requestOf = (model: Models.Model) =>
  Effect.gen(function*() {
    const requests: Array<HttpClientRequest.HttpClientRequest> = []
    const client = HttpClient.make((request) =>
      Effect.sync(() => {
        requests.push(request)
        return HttpClientResponse.fromWeb(request, Response.json({}))
      })
    )
    const engine = Engine.layer({ ...(model.name === undefined ? {} : { model: model.name }), retry: false })
    yield* Effect.exit(
      Effect.provide(
        Allm.generate("Hi"),
        engine.pipe(Layer.provide(model.adapter), Layer.provide(Layer.succeed(HttpClient.HttpClient, client)))
      )
    )
    return requests[0]!
  })

describe("models", () => {
  describe("resolve", () => {
    it.effect("takes what is asked for, else the variable, else the first key, else the embedded one", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* named("google/gemini-x", { ...keys, ALLM_MODEL: "openai/gpt-5" }), [
          "google/gemini-x",
          "option"
        ])
        assert.deepStrictEqual(yield* named(undefined, { ...keys, ALLM_MODEL: "openai/gpt-5" }), [
          "openai/gpt-5",
          "variable"
        ])
        assert.deepStrictEqual(yield* named(undefined, { ...keys, ALLM_MODEL: "  " }), ["openai/gpt-5-mini", "key"])
        assert.deepStrictEqual(yield* named(undefined, { ANTHROPIC_API_KEY: "sk", GOOGLE_API_KEY: "g" }), [
          "anthropic/claude-haiku-4-5",
          "key"
        ])
        assert.deepStrictEqual(yield* named(undefined, { OPENAI_API_KEY: "", GEMINI_API_KEY: "g" }), [
          "google/gemini-flash-latest",
          "key"
        ])
        assert.deepStrictEqual(yield* named(undefined), ["demo", "none"])
      }))

    it.effect("takes a provider alone, in any case, and names with slashes and colons of their own", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* named("OpenAI", keys), ["openai/gpt-5-mini", "option"])
        assert.deepStrictEqual(yield* named(" ollama/library/qwen3:8b "), ["ollama/library/qwen3:8b", "option"])
        assert.deepStrictEqual(yield* named("demo", keys), ["demo", "option"])
      }))

    it.effect("says which providers there are, and which may have been meant", () =>
      Effect.gen(function*() {
        assert.strictEqual(
          yield* told("opnai/gpt-5"),
          "There is no provider \"opnai\"; there are openai, anthropic, google, openai-chat, ollama, demo. " +
            "Did you mean openai/gpt-5?"
        )
        assert.strictEqual(
          yield* told("zzz"),
          "There is no provider \"zzz\"; there are openai, anthropic, google, openai-chat, ollama, demo."
        )
      }))

    it.effect("says which variable holds the key", () =>
      Effect.gen(function*() {
        assert.include(yield* told("anthropic", { ANTHROPIC_API_KEY: " " }), "set ANTHROPIC_API_KEY,")
        assert.include(yield* told("google/x"), "set GOOGLE_API_KEY or GEMINI_API_KEY,")
        assert.include(yield* told(undefined, { ALLM_MODEL: "openai" }), "set OPENAI_API_KEY,")
      }))

    it.effect("refuses names that are empty", () =>
      Effect.gen(function*() {
        assert.strictEqual(
          yield* told("  "),
          "The model has no name; write provider/name, such as openai/gpt-5-mini, or demo."
        )
        assert.strictEqual(
          yield* told("openai/"),
          "No model is named in \"openai/\"; write openai/gpt-5-mini or openai."
        )
        assert.include(yield* told("/gpt-5"), "There is no provider \"\"")
        assert.strictEqual(
          yield* told("demo/x"),
          "The embedded model has no others beside it; write --model demo."
        )
      }))

    it.effect("never shows a key", () =>
      Effect.gen(function*() {
        const models = yield* Effect.forEach(["openai", "anthropic", "google"], (asked) => resolve(asked, keys))
        const messages = yield* Effect.forEach(["x", "openai/", ""], (asked) => told(asked, keys))

        const shown = JSON.stringify([
          models.map(({ isDemo, label, name, origin }) => ({ isDemo, label, name, origin })),
          messages
        ])
        assert.notMatch(shown, /sk-1|sk-ant-1|g-1/)
      }))
  })

  describe("adapter", () => {
    it.effect("asks each provider where it is, with its key", () =>
      Effect.gen(function*() {
        const openai = yield* requestOf(yield* resolve("openai", keys))
        const chat = yield* requestOf(yield* resolve("openai-chat", keys))
        const anthropic = yield* requestOf(yield* resolve("anthropic", keys))
        const google = yield* requestOf(yield* resolve("google", keys))

        assert.strictEqual(openai.url, "https://api.openai.com/v1/responses")
        assert.strictEqual(openai.headers["authorization"], "Bearer sk-1")
        assert.strictEqual(chat.url, "https://api.openai.com/v1/chat/completions")
        assert.strictEqual(anthropic.headers["x-api-key"], "sk-ant-1")
        assert.include(google.url, "gemini-flash-latest")
        assert.strictEqual(google.headers["x-goog-api-key"], "g-1")
      }))

    it.effect("asks a server of one's own, with a key or without", () =>
      Effect.gen(function*() {
        const own = { ALLM_BASE_URL: "http://localhost:8000/v1" }
        const without = yield* requestOf(yield* resolve("openai-chat/mine", { ...keys, ...own }))
        const keyed = yield* requestOf(yield* resolve("openai-chat/mine", { ...keys, ...own, ALLM_API_KEY: "mine" }))
        const gateway = yield* requestOf(yield* resolve("anthropic", { ...keys, ALLM_BASE_URL: "http://gateway/v1" }))

        assert.strictEqual(without.url, "http://localhost:8000/v1/chat/completions")
        assert.isUndefined(without.headers["authorization"], "the key for OpenAI is for nobody else")
        assert.strictEqual(keyed.headers["authorization"], "Bearer mine")
        assert.match(gateway.url, /^http:\/\/gateway\/v1\//)
        assert.strictEqual(gateway.headers["x-api-key"], "sk-ant-1")
      }))

    it.effect("asks Ollama where OLLAMA_HOST says, and shows it no key of another provider", () =>
      Effect.gen(function*() {
        const at = (host: Record<string, string>) =>
          Effect.flatMap(resolve("ollama/qwen3", { ...keys, ...host }), requestOf)
        const usual = yield* at({})

        assert.strictEqual(usual.url, "http://localhost:11434/v1/chat/completions")
        assert.isUndefined(usual.headers["authorization"])
        for (
          const [host, url] of [
            ["gpu", "http://gpu:11434/v1"],
            ["gpu:8080", "http://gpu:8080/v1"],
            ["0.0.0.0", "http://localhost:11434/v1"],
            ["https://gpu.example/", "https://gpu.example:11434/v1"],
            ["http://gpu:1/v1/", "http://gpu:1/v1"]
          ] as const
        ) assert.strictEqual((yield* at({ OLLAMA_HOST: host })).url, `${url}/chat/completions`)
      }))

    it.effect("of the embedded model needs no network", () =>
      Effect.gen(function*() {
        const { adapter } = yield* resolve("demo")
        const nobody = HttpClient.make(() => Effect.die("asked the network"))

        const { name } = yield* Effect.provide(
          Adapter.Adapter,
          Layer.provide(adapter, Layer.succeed(HttpClient.HttpClient, nobody))
        )

        assert.strictEqual(name, "demo")
      }))
  })
})
