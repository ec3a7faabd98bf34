/**
 * `Fake` on a real model: the scripts are there, and nobody plays them. `ALLM_MODEL`, as in `google/gemini-flash-latest`, says
 * who is asked, and `ALLM_BASE_URL` where, if not at the usual place.
 */
import { Adapter, Engine, Fake, type Request, type Tool } from "@allm/core"
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { Config, ConfigError, Console, Context, Effect, Either, Layer } from "effect"

export * from "@allm/core/Fake"

type Provider = (options: { readonly baseUrl?: string | undefined }) => Layer.Layer<
  Adapter.Adapter,
  ConfigError.ConfigError,
  HttpClient.HttpClient
>

const providers: { readonly [name: string]: () => Promise<Provider> } = {
  openai: () => import("@allm/openai").then(({ OpenAi }) => OpenAi.layerConfig),
  "openai-chat": () => import("@allm/openai").then(({ OpenAiChat }) => OpenAiChat.layerConfig),
  anthropic: () => import("@allm/anthropic").then(({ Anthropic }) => Anthropic.layerConfig),
  google: () => import("@allm/google").then(({ Google }) => Google.layerConfig),
  ollama: () =>
    import("@allm/openai").then(({ OpenAiChat }) => ({ baseUrl = "http://localhost:11434/v1" }) =>
      OpenAiChat.layer({ baseUrl, name: "ollama" })
    )
}

const chosen = Config.mapOrFail(Config.string("ALLM_MODEL"), (text) => {
  const [name = "", ...model] = text.split("/")
  const load = providers[name]
  return load === undefined
    ? Either.left(ConfigError.InvalidData(["ALLM_MODEL"], `there is no provider ${name}`))
    : Either.right({ load, model: model.join("/") })
})

/** Tells what is asked and what it took, beside what the example prints. */
const told = (name: string, model: string, { messages, tools }: Request.Request) =>
  Console.error(`  > ${name} ${model}: ${messages.length} messages, ${tools.length} tools`)

const recorded = (real: Adapter.Service, model: string) => {
  const requests: Array<Request.Request> = []
  const adapter = Adapter.make((request, emit) => {
    requests.push(request)
    const asked = { ...request, model }
    return Effect.zipRight(
      told(real.name, model, asked),
      real.generate(asked, (events) => {
        const usage = events.flatMap((event) => event._tag === "MessageCompleted" ? event.usage ?? [] : [])
        const used = usage.map((one) => Console.error(`  < ${one.inputTokens} tokens in, ${one.outputTokens} out`))
        return Effect.zipRight(Effect.all(used, { discard: true }), emit(events))
      })
    )
  }, real)
  const none = Effect.succeed(0)
  const fake = { requests: Effect.sync(() => requests.slice()), open: none, closed: none }
  return Context.make(Adapter.Adapter, adapter).pipe(Context.add(Fake.Fake, fake))
}

export const layer = (_options: Fake.Options): Layer.Layer<Adapter.Adapter | Fake.Fake, ConfigError.ConfigError> =>
  Layer.unwrapEffect(Effect.gen(function*() {
    const { load, model } = yield* chosen
    const baseUrl = yield* Config.withDefault(Config.string("ALLM_BASE_URL"), undefined)
    const provider = yield* Effect.promise(load)
    const real = Layer.provide(provider({ baseUrl }), FetchHttpClient.layer)
    return Layer.effectContext(Effect.map(Adapter.Adapter, (adapter) => recorded(adapter, model))).pipe(
      Layer.provide(real)
    )
  }))

export const engine = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Fake.Options & Engine.Options<T, RE, RH, RP, RO>
) => {
  const {
    capabilities: _c,
    delay: _d,
    name: _n,
    record: _r,
    respond: _p,
    script: _s,
    scripts: _t,
    usage: _u,
    ...rest
  } = options
  return Layer.provideMerge(Engine.layer(rest as unknown as Engine.Options<T, RE, RH, RP, RO>), layer({}))
}
