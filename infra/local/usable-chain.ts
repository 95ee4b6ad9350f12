import { findAnvilMistake } from '../chain/anvil.ts';
import { SERVICES, type ServiceEntry } from './services.ts';
import type { StackOptions } from './stack-options.ts';

/**
 * Leaves the chain out of a start when its program cannot run and the start may continue without it. Nothing else needs
 * the chain.
 * @returns the options to use, and a sentence about it to print
 * @throws Error when the chain is required
 */
export function withUsableChain(options: StackOptions): { options: StackOptions; missing: readonly string[] } {
  const mistake = options.chain === true ? findAnvilMistake(options.chainProgram) : null;
  if (mistake === null) return { options, missing: [] };
  if (options.staysUp !== true) throw new Error(`${mistake.what}. ${mistake.mend}`);
  const names = (SERVICES as readonly ServiceEntry[]).filter(({ needsChain }) => needsChain === true);
  const without = names.map(({ name }) => name).join(' and ');
  const sentence = `The chain is left out, and with it ${without}: ${mistake.what}. ${mistake.mend}.`;
  options.say?.(sentence);
  return { options: { ...options, chain: false }, missing: [sentence] };
}
