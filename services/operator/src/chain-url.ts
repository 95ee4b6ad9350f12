import type { Addresses } from './addresses.ts';
import { UsageError } from './command.ts';

/** The given URL of the chain API, or that of the stack if it serves the chain. @throws UsageError */
export function findChainUrl(given: string | undefined, chain: string, chainApi: Addresses['chainApi']): string {
  if (given !== undefined) {
    if (/^https?:$/.test(URL.parse(given)?.protocol ?? '')) return given;
    throw new UsageError('--url: expected the address of the chain API');
  }
  const stack = chainApi();
  if (stack === null)
    throw new UsageError('--url: expected the address of the chain API, since the environment configures a deployment');
  const names = stack.chains.map(({ name }) => name);
  if (names.includes(chain)) return stack.url;
  throw new UsageError(`--chain: the local stack serves ${names.join(', ')}, not ${chain}`);
}
