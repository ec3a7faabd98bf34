/** The same agent on any provider: which one is a layer, and here a variable of the environment names it. */
import { Anthropic } from "@allm/anthropic"
import { Allm, type Engine, Fake, Tool } from "@allm/core"
import { Google } from "@allm/google"
import { OpenAi, OpenAiChat } from "@allm/openai"
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { Config, type ConfigError, Console, Effect, Layer, Schema, Stream } from "effect"

const getWeather = Tool.make("get_weather", {
  description: "Current weather of a city",
  parameters: { city: Schema.String },
  handler: ({ city }) => ({ city, sky: "clear", degrees: 21 })
})

const options = { tools: [getWeather], maxTurns: 5 }

const call = (id: string, city: string) => Fake.toolCall({ id, name: "get_weather", arguments: { city } })

// `engineConfig` reads the key of its provider: OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY.
const engines: Record<string, Layer.Layer<Engine.Engine, ConfigError.ConfigError, HttpClient.HttpClient>> = {
  openai: OpenAi.engineConfig(options),
  "openai-chat": OpenAiChat.engineConfig(options),
  anthropic: Anthropic.engineConfig(options),
  google: Google.engineConfig(options),
  ollama: OpenAiChat.engine({ ...options, baseUrl: "http://localhost:11434/v1" }),
  fake: Fake.engine({
    ...options,
    scripts: [
      [call("call_0", "Oslo"), call("call_1", "Rome"), Fake.finish("tool_calls")],
      [Fake.text("Both are "), Fake.text("clear."), Fake.usage({ totalTokens: 42 }), Fake.finish("stop")]
    ]
  })
}

const chat = (model: string) =>
  Stream.runForEach(Allm.stream("How is the weather in Oslo and in Rome?", { model }), (event) => {
    switch (event._tag) {
      case "ToolExecutionStarted":
        return Console.log(`calls ${event.toolName} ${JSON.stringify(event.arguments)}`)
      case "TextDelta":
        return Console.log(`says "${event.delta}"`)
      case "ChatCompleted":
        return Console.log(`${event.result.haltedReason}, ${event.result.usage.totalTokens} tokens`)
      default:
        return Effect.void
    }
  })

const program = Effect.gen(function*() {
  // As in `ALLM_MODEL=google/gemini-flash-latest`.
  const chosen = yield* Config.withDefault(Config.string("ALLM_MODEL"), "fake/scripted")
  const [provider = "", ...model] = chosen.split("/")
  const engine = engines[provider] ?? Layer.die(`no ${provider}; there are ${Object.keys(engines).join(", ")}`)
  yield* Effect.provide(chat(model.join("/")), engine)
})

Effect.runPromise(Effect.provide(program, FetchHttpClient.layer))
