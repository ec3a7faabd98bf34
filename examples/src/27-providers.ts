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

type Engines = Layer.Layer<Engine.Engine, ConfigError.ConfigError, HttpClient.HttpClient>

// `engineConfig` reads the key of its provider: OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY.
const engines: Record<string, (model: string) => Engines> = {
  openai: (model) => OpenAi.engineConfig({ ...options, model }),
  anthropic: (model) => Anthropic.engineConfig({ ...options, model }),
  google: (model) => Google.engineConfig({ ...options, model }),
  ollama: (model) => OpenAiChat.engine({ ...options, model, baseUrl: "http://localhost:11434/v1" }),
  fake: (model) =>
    Fake.engine({
      ...options,
      model,
      scripts: [
        [call("call_0", "Oslo"), call("call_1", "Rome"), Fake.finish("tool_calls")],
        [Fake.text("Both are "), Fake.text("clear."), Fake.usage({ totalTokens: 42 }), Fake.finish("stop")]
      ]
    })
}

const program = Stream.runForEach(Allm.stream("How is the weather in Oslo and in Rome?"), (event) => {
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

// As in `ALLM_MODEL=google/gemini-flash-latest`.
const Assistant = Layer.unwrapEffect(Effect.gen(function*() {
  const chosen = yield* Config.withDefault(Config.string("ALLM_MODEL"), "fake/scripted")
  const [provider = "", ...model] = chosen.split("/")
  return engines[provider]?.(model.join("/")) ??
    Layer.die(`no ${provider}; there are ${Object.keys(engines).join(", ")}`)
}))

Effect.runPromise(program.pipe(Effect.provide(Assistant), Effect.provide(FetchHttpClient.layer)))
