/**
 * Anthropic models.
 *
 * @since 0.1.0
 */

/**
 * Claude, over Anthropic's Messages API.
 *
 * @since 0.1.0
 */
export * as Anthropic from "./Anthropic.ts"
