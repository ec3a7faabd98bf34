/**
 * What has to be known of a model before it is asked. Its name is all there is to go by.
 */

/** A number first, as in `claude-3-5-sonnet`, or a family, as in `claude-opus-4-1-20250805`. A date is no version. */
const pattern = /claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[.-](\d{1,2})(?!\d))?/i

/** 405 for Claude 4.5. A Claude without a number counts as new; what is not a Claude has no version. */
const versionOf = (model: string): number | undefined => {
  const [, major, minor] = pattern.exec(model) ?? []
  if (major !== undefined) return Number(major) * 100 + Number(minor ?? 0)
  return /claude/i.test(model) ? Infinity : undefined
}

/** The longest answer to ask for where the caller names no limit: the API demands one. */
export const defaultMaxTokens = (model: string): number => {
  const version = versionOf(model)
  if (version === undefined) return 8_192
  if (version >= 405) return 64_000
  if (version >= 307) return 32_000
  return version >= 305 ? 8_192 : 4_096
}

/** Whether the API itself keeps the answers of a model to a schema. */
export const followsSchemas = (model: string): boolean => {
  const version = versionOf(model)
  return version !== undefined && version >= 405
}
