import type { Addresses } from './addresses.ts';
import { UsageError } from './command.ts';

/**
 * Address of the interface that serves a chain: the given one, or that of the stack.
 * @throws UsageError for an invalid address, a chain that the stack does not serve, or when there is no address
 */
export function findChainUrl(given: string | undefined, chain: string, chainApi: Addresses['chainApi']): string {
  if (given !== undefined) {
    if (/^https?:$/.test(URL.parse(given)?.protocol ?? '')) return given;
    throw new UsageError('--url: expected the address of the chain interface');
  }
  const stack = chainApi();
  if (stack === null)
    throw new UsageError(
      '--url: expected the address of the chain interface, since the environment names the stores of another deployment than the stack',
    );
  const names = stack.chains.map(({ name }) => name);
  if (names.includes(chain)) return stack.url;
  throw new UsageError(`--chain: the stack that runs here serves ${names.join(', ')}, and no ${chain}`);
}
