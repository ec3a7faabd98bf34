/**
 * The checks of an encoder as tests.
 *
 * @since 0.1.0
 */
import type { ToolResultEncoder } from "@allm/core"
import type * as Layer from "effect/Layer"
import type { Options } from "./Check.ts"
import { register } from "./internal/register.ts"
import { make } from "./ToolResultEncoderChecks.ts"

/**
 * Adds a test for every promise of an encoder.
 *
 * @since 0.1.0
 * @category testing
 */
export const run = <E>(
  name: string,
  layer: Layer.Layer<ToolResultEncoder.ToolResultEncoder, E>,
  options?: Options
): void => register(name, make(layer, options), options)
