/**
 * Settings that stand in the program or come from the surroundings.
 */
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"

/** Every setting as it is, or to be read. */
export type Configured<A> = { readonly [K in keyof A]: A[K] | Config.Config<Exclude<A[K], undefined>> }

/** The key in a variable. One that is empty is missing. */
const keyNamed = (variable: string): Config.Config<Redacted.Redacted> =>
  Config.redacted(Config.nested(Config.mapOrFail(Config.string(), trimmed), variable))

const trimmed = (text: string): Either.Either<string, ConfigError.ConfigError> =>
  text.trim() === "" ? Either.left(ConfigError.MissingData([], "the key is empty")) : Either.right(text.trim())

const defaultKey = keyNamed("GOOGLE_API_KEY").pipe(Config.orElse(() => keyNamed("GEMINI_API_KEY")))

const read = <A>(value: A | Config.Config<A>): Effect.Effect<A, ConfigError.ConfigError> =>
  Config.isConfig(value) ? value : Effect.succeed(value as A)

export const readKey = (
  given: Redacted.Redacted | Config.Config<Redacted.Redacted> | undefined
): Effect.Effect<Redacted.Redacted, ConfigError.ConfigError> =>
  Effect.filterOrFail(
    read(given ?? defaultKey),
    (key) => Redacted.value(key).trim() !== "",
    () => ConfigError.MissingData(["apiKey"], "the key is empty")
  )

/** Reads the settings that are not there yet. */
export const readAll = <A extends { readonly [key: string]: unknown }>(
  given: Configured<A>
): Effect.Effect<A, ConfigError.ConfigError> =>
  Effect.all(Object.fromEntries(Object.entries(given).map(([key, value]) => [key, read(value)]))) as Effect.Effect<
    A,
    ConfigError.ConfigError
  >
