/**
 * A bridge, both ways, to `@effect/ai`.
 *
 * @since 0.1.0
 */

/**
 * Models, tools and conversations of `@effect/ai` here, and ours there.
 *
 * @since 0.1.0
 */
export * as EffectAi from "./EffectAi.ts"
