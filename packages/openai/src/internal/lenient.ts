/**
 * Reading what came over a wire without trusting it: what is not of the expected kind is as good as absent.
 */

/** A JSON object of unknown content. */
export interface Fields {
  readonly [key: string]: unknown
}

export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : undefined

/** Text, or none. */
export const textOf = (value: unknown): string => typeof value === "string" ? value : ""

export const listOf = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The objects of a list. */
export const objectsOf = (value: unknown): ReadonlyArray<Fields> =>
  listOf(value).flatMap((item): ReadonlyArray<Fields> => {
    const fields = fieldsOf(item)
    return fields === undefined ? [] : [fields]
  })

export const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined

/** An object without those of its fields that say nothing. */
export const compact = <A extends object>(fields: A): { [K in keyof A]?: Exclude<A[K], undefined | null> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null)) as never
