/**
 * The settings of a provider: plain values, or read from the environment by `Config`. For whoever writes a provider.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"

/**
 * Each setting as itself, or as what is to be read.
 *
 * @since 0.1.0
 * @category models
 */
export type Configurable<A> = {
  readonly [K in keyof A]: A[K] | Config.Config<Exclude<A[K], undefined>>
}

/**
 * The key in the first of these variables that has one. An empty one is none.
 *
 * @example
 * ```ts
 * import { ProviderSettings } from "@allm/core"
 * import { ConfigProvider, Effect, Redacted } from "effect"
 *
 * const key = ProviderSettings.keyNamed("ACME_API_KEY", "ACME_KEY")
 * const environment = ConfigProvider.fromMap(new Map([["ACME_API_KEY", ""], ["ACME_KEY", "k-1"]]))
 *
 * assert.strictEqual(Redacted.value(Effect.runSync(Effect.withConfigProvider(key, environment))), "k-1")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const keyNamed = (...variables: readonly [string, ...Array<string>]): Config.Config<Redacted.Redacted> => {
  const [first, ...others] = variables
  return others.map(keyIn).reduce((found, next) => Config.orElse(found, () => next), keyIn(first))
}

const keyIn = (variable: string): Config.Config<Redacted.Redacted> =>
  Config.nested(
    Config.primitive("a key", (text) => {
      const key = text.trim()
      return key === ""
        ? Either.left(ConfigError.MissingData([], "the key is empty"))
        : Either.right(Redacted.make(key))
    }),
    variable
  )

interface Keyed {
  readonly apiKey?: Redacted.Redacted | undefined
}

/**
 * Settings with nothing left to read. Those that are not given stay out; `otherKey` is the key when none is given.
 *
 * @example
 * ```ts
 * import { ProviderSettings } from "@allm/core"
 * import { Config, ConfigProvider, Effect, Redacted } from "effect"
 *
 * const settings = ProviderSettings.resolved<{ readonly apiKey?: Redacted.Redacted; readonly baseUrl?: string }>(
 *   { baseUrl: Config.string("ACME_URL") },
 *   ProviderSettings.keyNamed("ACME_KEY")
 * )
 * const environment = ConfigProvider.fromMap(new Map([["ACME_URL", "https://acme.example"], ["ACME_KEY", "k-1"]]))
 *
 * const read = Effect.runSync(Effect.withConfigProvider(settings, environment))
 *
 * assert.strictEqual(read.baseUrl, "https://acme.example")
 * assert.strictEqual(Redacted.value(read.apiKey!), "k-1")
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const resolved = <A extends Keyed>(
  settings: Configurable<A>,
  otherKey: Config.Config<Redacted.Redacted | undefined>
): Config.Config<A> => {
  const { apiKey, ...rest }: { readonly [setting: string]: unknown } = settings
  const entries = Object.entries({
    ...rest,
    apiKey: apiKey === undefined ? otherKey : present(configOf(apiKey as Redacted.Redacted))
  })
  return Config.map(
    Config.all(entries.map(([key, value]) => Config.map(configOf(value), (read) => [key, read] as const))),
    (read) => Object.fromEntries(read.filter(([, value]) => value !== undefined)) as unknown as A
  )
}

const configOf = <A>(value: A | Config.Config<A>): Config.Config<A> =>
  Config.isConfig(value) ? value as Config.Config<A> : Config.succeed(value as A)

/** A key that is empty, wherever it was read, is a mistake. */
const present = (key: Config.Config<Redacted.Redacted>): Config.Config<Redacted.Redacted> =>
  Config.mapOrFail(key, (read) =>
    Redacted.value(read).trim() === ""
      ? Either.left(ConfigError.MissingData(["apiKey"], "the key is empty"))
      : Either.right(read))

/**
 * Takes the settings of a provider out of options that also hold those of an engine.
 *
 * @example
 * ```ts
 * import { ProviderSettings } from "@allm/core"
 *
 * const options = { baseUrl: "https://acme.example", maxTurns: 3 }
 * const [settings, rest] = ProviderSettings.split<{ baseUrl: string }, { maxTurns: number }>(["baseUrl"], options)
 *
 * assert.deepStrictEqual(settings, { baseUrl: "https://acme.example" })
 * assert.deepStrictEqual(rest, { maxTurns: 3 })
 * ```
 *
 * @since 0.1.0
 * @category combinators
 */
export const split = <C extends object, E extends object>(
  keys: ReadonlyArray<keyof C>,
  options: C & E
): readonly [settings: C, rest: E] => {
  const isOurs = ([key]: readonly [string, unknown]): boolean => (keys as ReadonlyArray<string>).includes(key)
  const entries = Object.entries(options)
  return [
    Object.fromEntries(entries.filter(isOurs)) as C,
    Object.fromEntries(entries.filter((entry) => !isOurs(entry))) as E
  ]
}
