/**
 * Plain data: what of a value survives as JSON.
 */
import * as Either from "effect/Either"

export type JsonObject = { readonly [key: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const parse = (text: string): Either.Either<unknown, unknown> => Either.try((): unknown => JSON.parse(text))

/** The text of a value, `undefined` when it has none: a bigint, a cycle, a function. */
export const print = (value: unknown): string | undefined =>
  Either.getOrUndefined(Either.try(() => JSON.stringify(value) as string | undefined))

/** A value as JSON keeps it: classes become objects, what is undefined goes. */
export const project = (value: unknown): unknown => {
  const text = print(value)
  return text === undefined ? undefined : JSON.parse(text)
}

/** The members of an object that say something. */
export const projectObject = (value: unknown): JsonObject => {
  const projected = project(value)
  return isObject(projected) ? projected : {}
}

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0

/** An object of the members that are there. */
export const compact = <A extends object>(value: A): { [K in keyof A]: Exclude<A[K], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as never
