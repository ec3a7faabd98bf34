/**
 * `Fake` on a real model: the scripts are there, and nobody plays them. `ALLM_PROVIDER` says which provider is asked,
 * `ALLM_MODEL` which of its models, and `ALLM_BASE_URL` where, if not at its usual place.
 */
import { Adapter, Engine, Fake, type Request, type Tool } from "@allm/core"
import { FetchHttpClient, type HttpClient } from "@effect/platform"
import { Config, ConfigError, Console, Context, Effect, Either, Layer } from "effect"

export * from "@allm/core/Fake"

interface Provider {
  readonly layerConfig: (config: {
    readonly baseUrl?: string | undefined
  }) => Layer.Layer<Adapter.Adapter, ConfigError.ConfigError, HttpClient.HttpClient>
}

const providers: { readonly [name: string]: { readonly model: string; readonly load: () => Promise<Provider> } } = {
  openai: { model: "gpt-5-mini", load: () => import("@allm/openai").then(({ OpenAi }) => OpenAi) },
  "openai-chat": { model: "gpt-5-mini", load: () => import("@allm/openai").then(({ OpenAiChat }) => OpenAiChat) },
  anthropic: { model: "claude-haiku-4-5", load: () => import("@allm/anthropic").then(({ Anthropic }) => Anthropic) },
  google: { model: "gemini-flash-latest", load: () => import("@allm/google").then(({ Google }) => Google) }
}

const chosen = Config.mapOrFail(Config.string("ALLM_PROVIDER"), (name) => {
  const provider = providers[name]
  return provider === undefined
    ? Either.left(ConfigError.InvalidData(["ALLM_PROVIDER"], `write one of ${Object.keys(providers).join(", ")}`))
    : Either.right({ name, ...provider })
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
    const provider = yield* chosen
    const model = yield* Config.withDefault(Config.string("ALLM_MODEL"), provider.model)
    const baseUrl = yield* Config.withDefault(Config.string("ALLM_BASE_URL"), undefined)
    const { layerConfig } = yield* Effect.promise(provider.load)
    const real = Layer.provide(layerConfig({ baseUrl }), FetchHttpClient.layer)
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
