/**
 * Which model answers: what `--model` asks for, what the environment says, or the embedded one.
 */
import { Anthropic } from "@allm/anthropic"
import type { Adapter } from "@allm/core/Adapter"
import * as ProviderSettings from "@allm/core/ProviderSettings"
import { Google } from "@allm/google"
import { OpenAi, OpenAiChat } from "@allm/openai"
import * as Options from "@effect/cli/Options"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Config from "effect/Config"
import type { ConfigError } from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as DemoModel from "./demo/model.ts"
import { nearest } from "./nearest.ts"

/** A model that cannot be had; the message says what to write instead. */
export class ModelError extends Schema.TaggedError<ModelError>("@allm/cli/models/ModelError")("ModelError", {
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/** The option of every command that asks a model. */
export const option: Options.Options<Option.Option<string>> = Options.text("model").pipe(
  Options.withAlias("m"),
  Options.withPseudoName("provider/name"),
  Options.withDescription(
    "The model. Default $ALLM_MODEL, else one of the first provider whose key is in the environment, else an embedded one."
  ),
  Options.optional
)

/** Who chose a model: the option, the variable `ALLM_MODEL`, a key that was found, or nobody. */
export type Origin = "option" | "variable" | "key" | "none"

export interface Model {
  /** Such as `openai/gpt-5-mini`, or `demo`. */
  readonly label: string
  readonly isDemo: boolean
  readonly origin: Origin
  /** What the provider calls it. */
  readonly name: string | undefined
  readonly adapter: Layer.Layer<Adapter, ConfigError, HttpClient.HttpClient>
}

type Key = Option.Option<Redacted.Redacted>

interface Provider {
  readonly model: string
  /** The variables that hold its key, the first that has one counts; none when it needs no key. */
  readonly variables: ReadonlyArray<string>
  readonly adapter: (place: {
    readonly apiKey?: Redacted.Redacted
    readonly baseUrl?: string
  }) => Layer.Layer<Adapter, never, HttpClient.HttpClient>
}

// In the order in which a key makes one the default.
const providers: { readonly [name: string]: Provider } = {
  openai: { model: "gpt-5-mini", variables: ["OPENAI_API_KEY"], adapter: OpenAi.layer },
  anthropic: { model: "claude-haiku-4-5", variables: ["ANTHROPIC_API_KEY"], adapter: Anthropic.layer },
  google: { model: "gemini-flash-latest", variables: ["GOOGLE_API_KEY", "GEMINI_API_KEY"], adapter: Google.layer },
  "openai-chat": { model: "gpt-5-mini", variables: ["OPENAI_API_KEY"], adapter: OpenAiChat.layer },
  ollama: {
    model: "llama3.2",
    variables: [],
    adapter: (place) => OpenAiChat.layer({ ...place, name: "ollama" })
  }
}

/** The embedded model, which needs no provider. */
const demo = "demo"

/** The names that `--model` may begin with. */
export const providerNames: ReadonlyArray<string> = [...Object.keys(providers), demo]

/** The variables that hold keys, in the order in which they are looked at. */
export const keyVariables: ReadonlyArray<string> = [
  ...new Set(Object.values(providers).flatMap(({ variables }) => variables))
]

const given = (variable: string): Config.Config<Option.Option<string>> =>
  Config.map(
    Config.option(Config.string(variable)),
    (value) => Option.filter(Option.map(value, (text) => text.trim()), (text) => text !== "")
  )

const keyOf = ([first, ...others]: ReadonlyArray<string>): Config.Config<Key> =>
  first === undefined
    ? Config.succeed(Option.none())
    : Config.option(ProviderSettings.keyNamed(first, ...others))

const refuse = (detail: string): ModelError => new ModelError({ detail })

/**
 * What `--model` asks for, else `ALLM_MODEL`, else the default model of the first provider whose key is in the environment,
 * else the embedded one.
 */
export const resolve = (asked: Option.Option<string>): Effect.Effect<Model, ModelError | ConfigError> =>
  Effect.gen(function*() {
    if (Option.isSome(asked)) return yield* named(asked.value, "option")
    const variable = yield* given("ALLM_MODEL")
    if (Option.isSome(variable)) return yield* named(variable.value, "variable")
    for (const [name, provider] of Object.entries(providers)) {
      if (Option.isSome(yield* keyOf(provider.variables))) return yield* named(name, "key")
    }
    return embedded("none")
  })

const embedded = (origin: Origin): Model => ({
  label: demo,
  isDemo: true,
  origin,
  name: undefined,
  adapter: DemoModel.layer
})

const named = Effect.fnUntraced(function*(asked: string, origin: Origin) {
  const { model, provider } = yield* parse(asked.trim())
  if (provider === demo) return embedded(origin)
  const known = providers[provider]!
  const name = model ?? known.model
  const place = yield* placeOf(provider, known)
  const adapter = known.adapter({
    ...(Option.isSome(place.apiKey) ? { apiKey: place.apiKey.value } : {}),
    ...(place.baseUrl === undefined ? {} : { baseUrl: place.baseUrl })
  })
  return { label: `${provider}/${name}`, isDemo: false, origin, name, adapter }
})

/** Takes `provider/name` apart; the name may hold slashes of its own. */
const parse = (
  asked: string
): Either.Either<{ readonly provider: string; readonly model: string | undefined }, ModelError> => {
  if (asked === "") return Either.left(refuse(`The model has no name; write ${examples}.`))
  const slash = asked.indexOf("/")
  const provider = (slash < 0 ? asked : asked.slice(0, slash)).toLowerCase()
  const model = slash < 0 ? undefined : asked.slice(slash + 1).trim()
  if (!providerNames.includes(provider)) return Either.left(refuse(unknownProvider(asked, provider)))
  if (provider === demo && model !== undefined) {
    return Either.left(refuse(`The embedded model has no others beside it; write --model demo.`))
  }
  return model === ""
    ? Either.left(refuse(`No model is named in ${JSON.stringify(asked)}; write ${exampleOf(provider)} or ${provider}.`))
    : Either.right({ provider, model })
}

const exampleOf = (provider: string): string => `${provider}/${providers[provider]!.model}`

const examples = `provider/name, such as ${exampleOf("openai")}, or demo`

const unknownProvider = (asked: string, provider: string): string => {
  const [near] = nearest(provider, providerNames)
  const rest = asked.slice(provider.length)
  const meant = near === undefined ? "" : ` Did you mean ${near === demo ? demo : `${near}${rest}`}?`
  return `There is no provider ${JSON.stringify(provider)}; there are ${providerNames.join(", ")}.${meant}`
}

const ollamaUrl = "http://localhost:11434/v1"

/**
 * Where a provider is and the key for it. A server of one's own, which `ALLM_BASE_URL` names, may need none. What speaks
 * Chat Completions may be anybody's, so it is not shown the key for OpenAI: `ALLM_API_KEY` is for it.
 */
const placeOf = Effect.fnUntraced(function*(name: string, provider: Provider) {
  const apiKey = yield* keyOf(provider.variables)
  const own = yield* given("ALLM_BASE_URL")
  if (Option.isSome(own)) {
    const ownKey = yield* keyOf(["ALLM_API_KEY"])
    return { apiKey: name === "openai-chat" ? ownKey : Option.orElse(ownKey, () => apiKey), baseUrl: own.value }
  }
  if (name === "ollama") {
    const host = yield* given("OLLAMA_HOST")
    return { apiKey, baseUrl: Option.match(host, { onNone: () => ollamaUrl, onSome: ollamaAt }) }
  }
  return Option.isNone(apiKey) ? yield* refuse(missingKey(name, provider)) : { apiKey, baseUrl: undefined }
})

const missingKey = (name: string, { variables }: Provider): string =>
  `${name} needs a key: set ${variables.join(" or ")}, or write --model demo for the embedded model, which needs none.`

/** What people write into `OLLAMA_HOST`: a host, perhaps with a port, perhaps with a scheme. */
const ollamaAt = (host: string): string => {
  const address = /^[a-z]+:\/\//i.test(host) ? host : `http://${host}`
  const withPort = /:\d+(\/|$)/.test(address.replace(/^[a-z]+:\/\//i, "")) ? address : address.replace(/\/*$/, ":11434")
  const bare = withPort.replace(/\/+$/, "").replace("//0.0.0.0:", "//localhost:")
  return bare.endsWith("/v1") ? bare : `${bare}/v1`
}
