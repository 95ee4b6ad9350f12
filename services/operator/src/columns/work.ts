import type { Terminal, Values } from '../command.ts';
import type { Engine } from './engine.ts';

/** What an action of the command works with. */
export interface ColumnsWork {
  readonly engine: Engine;
  readonly values: Values;
  readonly terminal: Terminal;
  readonly wallClockMs: () => number;
  readonly signal: AbortSignal;
}
