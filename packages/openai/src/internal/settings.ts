/**
 * Settings that are plain values or come from `Config`.
 */
import * as Config from "effect/Config"
import * as ConfigError from "effect/ConfigError"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"

/** Each setting as itself, or as what is read from the environment. */
export type Configurable<A> = {
  readonly [K in keyof A]: A[K] | Config.Config<Exclude<A[K], undefined>>
}

/** The key under the name of a variable. An empty one is none. */
export const keyNamed = (variable: string): Config.Config<Redacted.Redacted> =>
  Config.nested(
    Config.primitive("a key", (text) => {
      const key = text.trim()
      return key === ""
        ? Either.left(ConfigError.MissingData([], "the key is empty"))
        : Either.right(Redacted.make(key))
    }),
    variable
  )

type Keyed = { readonly apiKey?: Redacted.Redacted | undefined }

/** Settings with nothing left to read. Those that are not given stay out; `otherKey` is the key when none is given. */
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
  Config.validate(key, { message: "the key is empty", validation: (read) => Redacted.value(read).trim() !== "" })

/** Takes the settings of a provider out of options that also hold those of an engine. */
export const split = <C extends object, E extends object>(
  keys: ReadonlyArray<keyof C>,
  options: C & E
): readonly [config: C, rest: E] => {
  const isOurs = ([key]: readonly [string, unknown]): boolean => (keys as ReadonlyArray<string>).includes(key)
  const entries = Object.entries(options)
  return [
    Object.fromEntries(entries.filter(isOurs)) as C,
    Object.fromEntries(entries.filter((entry) => !isOurs(entry))) as E
  ]
}
