/**
 * Test suites that every adapter, tool executor, result encoder, session store and tool journal must pass.
 *
 * @since 0.1.0
 */

/**
 * What every adapter has to do, as checks.
 *
 * An adapter shows itself in scenarios: what the model at its other end says is told by the check, and brought about by
 * whoever wrote the adapter, with a scripted server or a script.
 *
 * @since 0.1.0
 */
export * as AdapterChecks from "./AdapterChecks.ts"

/**
 * The checks of an adapter as tests.
 *
 * @since 0.1.0
 */
export * as AdapterSuite from "./AdapterSuite.ts"

/**
 * A promise an implementation has to keep, as a value: it can be run by any test runner, or by none.
 *
 * @since 0.1.0
 */
export * as Check from "./Check.ts"

/**
 * What holds of the events of one whole answer of a model, wherever they come from: an adapter, a recording, a log.
 *
 * @since 0.1.0
 */
export * as EventLaws from "./EventLaws.ts"

/**
 * What every session store has to do, as checks.
 *
 * @since 0.1.0
 */
export * as SessionStoreChecks from "./SessionStoreChecks.ts"

/**
 * The checks of a session store as tests.
 *
 * @since 0.1.0
 */
export * as SessionStoreSuite from "./SessionStoreSuite.ts"

/**
 * What every place for the leases of sessions has to do, as checks.
 *
 * @since 0.1.0
 */
export * as SessionLeaseChecks from "./SessionLeaseChecks.ts"

/**
 * The checks of leases as tests.
 *
 * @since 0.1.0
 */
export * as SessionLeaseSuite from "./SessionLeaseSuite.ts"

/**
 * What every tool executor has to do, as checks.
 *
 * @since 0.1.0
 */
export * as ToolExecutorChecks from "./ToolExecutorChecks.ts"

/**
 * The checks of a tool executor as tests.
 *
 * @since 0.1.0
 */
export * as ToolExecutorSuite from "./ToolExecutorSuite.ts"

/**
 * What every tool journal has to do, as checks.
 *
 * @since 0.1.0
 */
export * as ToolJournalChecks from "./ToolJournalChecks.ts"

/**
 * The checks of a tool journal as tests.
 *
 * @since 0.1.0
 */
export * as ToolJournalSuite from "./ToolJournalSuite.ts"

/**
 * What every encoder of tool results has to do, as checks.
 *
 * @since 0.1.0
 */
export * as ToolResultEncoderChecks from "./ToolResultEncoderChecks.ts"

/**
 * The checks of an encoder as tests.
 *
 * @since 0.1.0
 */
export * as ToolResultEncoderSuite from "./ToolResultEncoderSuite.ts"
