/**
 * JSON of unknown origin, looked at without trust and without a schema: this is done for every frame.
 */

export type JsonObject = { readonly [key: string]: unknown }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const objectOf = (value: unknown): JsonObject => isObject(value) ? value : {}

export const listOf = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

export const textOf = (value: unknown): string => typeof value === "string" ? value : ""

/** What the text says, if it is JSON. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What is given over what there is. Objects are merged, all else is replaced. */
export const merge = (own: JsonObject, given: JsonObject): JsonObject => {
  const merged = new Map(Object.entries(own))
  for (const [key, value] of Object.entries(given)) {
    const before = merged.get(key)
    merged.set(key, isObject(before) && isObject(value) ? merge(before, value) : value)
  }
  return Object.fromEntries(merged)
}
