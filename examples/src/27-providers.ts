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
  openai: OpenAi.engineConfig({ ...options, model: "gpt-5-mini" }),
  anthropic: Anthropic.engineConfig({ ...options, model: "claude-haiku-4-5" }),
  google: Google.engineConfig({ ...options, model: "gemini-flash-latest" }),
  ollama: OpenAiChat.engine({ ...options, model: "qwen3", baseUrl: "http://localhost:11434/v1" }),
  fake: Fake.engine({
    ...options,
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

const Assistant = Layer.unwrapEffect(Effect.gen(function*() {
  const provider = yield* Config.withDefault(Config.string("ALLM_PROVIDER"), "fake")
  return engines[provider] ?? Layer.die(`no provider ${provider}; there are ${Object.keys(engines).join(", ")}`)
}))

Effect.runPromise(program.pipe(Effect.provide(Assistant), Effect.provide(FetchHttpClient.layer)))
