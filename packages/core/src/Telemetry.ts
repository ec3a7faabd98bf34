/**
 * What operators can measure.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"

/**
 * Whether spans carry the arguments and results of calls. They do not unless switched on: both may hold secrets.
 *
 * @since 0.1.0
 * @category models
 */
export class CaptureContent extends Context.Reference<CaptureContent>()<"@allm/core/Telemetry/CaptureContent", boolean>(
  "@allm/core/Telemetry/CaptureContent",
  { defaultValue: () => false }
) {}

/**
 * Calls that ended, by tool and outcome.
 *
 * @since 0.1.0
 * @category models
 */
export const toolCalls = Metric.counter("allm_tool_calls_total", {
  description: "Tool calls that ended, by tool and outcome",
  incremental: true
})

/**
 * How long calls took, by tool.
 *
 * @since 0.1.0
 * @category models
 */
export const toolDuration = Metric.histogram(
  "allm_tool_duration_ms",
  MetricBoundaries.exponential({ start: 1, factor: 4, count: 9 }),
  "Duration of tool calls in milliseconds, by tool"
)

/**
 * Calls that failed, by tag of the error.
 *
 * @since 0.1.0
 * @category models
 */
export const toolErrors = Metric.counter("allm_tool_errors_total", {
  description: "Tool calls that failed, by tag",
  incremental: true
})

/**
 * Fibers that did not stop when their call was over its limit.
 *
 * @since 0.1.0
 * @category models
 */
export const abandonedFibers = Metric.counter("allm_tool_abandoned_fibers_total", {
  description: "Tool fibers that did not stop when interrupted and were left behind",
  incremental: true
})

/**
 * Model calls that ended, by provider.
 *
 * @since 0.1.0
 * @category models
 */
export const modelCalls = Metric.counter("allm_model_calls_total", {
  description: "Model calls that ended, by provider",
  incremental: true
})

/**
 * How long model calls took, in milliseconds, by provider.
 *
 * @since 0.1.0
 * @category models
 */
export const modelDuration = Metric.histogram(
  "allm_model_duration_ms",
  MetricBoundaries.exponential({ start: 10, factor: 4, count: 9 }),
  "Duration of model calls in milliseconds, by provider"
)

/**
 * Model calls that failed, by provider and reason.
 *
 * @since 0.1.0
 * @category models
 */
export const modelErrors = Metric.counter("allm_model_errors_total", {
  description: "Model calls that failed, by provider and reason",
  incremental: true
})

/**
 * Tokens read and written, by provider and kind.
 *
 * @since 0.1.0
 * @category models
 */
export const tokens = Metric.counter("allm_tokens_total", {
  description: "Tokens read and written, by provider and kind",
  incremental: true
})

/**
 * Frames of a provider that could not be read, by provider.
 *
 * @since 0.1.0
 * @category models
 */
export const unreadableFrames = Metric.counter("allm_unreadable_frames_total", {
  description: "Frames of providers that could not be read and were left out, by provider",
  incremental: true
})
