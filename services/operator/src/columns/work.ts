import type { parseOptions, Terminal } from '../command.ts';
import type { Engine } from './engine.ts';

/** What an action of the command works with. */
export interface ColumnsWork {
  readonly engine: Engine;
  readonly values: ReturnType<typeof parseOptions>['values'];
  readonly terminal: Terminal;
  readonly wallClockMs: () => number;
  readonly signal: AbortSignal;
}
