/**
 * The checks of leases as tests.
 *
 * @since 0.1.0
 */
import { register } from "./internal/register.ts"
import { make, type Options, type Subject } from "./SessionLeaseChecks.ts"

/**
 * Adds a test for every promise of leases, with the time of the machine.
 *
 * @since 0.1.0
 * @category testing
 */
export const run = <E>(name: string, subject: Subject<E>, options?: Options): void =>
  register(name, make(subject, options), { ...options, live: true })
