/**
 * What came over the wire, narrowed step by step: what has another shape than expected counts as absent.
 */

export type Wire = { readonly [key: string]: unknown }

const nothing: ReadonlyArray<unknown> = []

export const objectOf = (value: unknown): Wire | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Wire : undefined

export const listOf = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : nothing

export const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

export const countOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined
