import { VERIFICATION_STATUSES } from '@playline/contracts';
import type { ChainContext, ChainJob } from '../chain/chain-job.ts';
import { backfill, verify } from '../chain/reread.ts';
import { showStatus } from '../chain/status.ts';
import { refreshToken, setVerification } from '../chain/token-words.ts';
import { type Command, choiceOf, type ExitCode, parseOptions, type Terminal } from '../command.ts';

const HELP = `usage: operator chain status [--chain NAME] [--json]
       operator chain verify   --chain NAME [--from BLOCK] [--to BLOCK] [--json]
       operator chain backfill --chain NAME --from BLOCK --to BLOCK [--writer-group NAME] [--json]
       operator chain refresh-token --chain NAME --address 0x… [--json]
       operator chain verification  --chain NAME --address 0x… --status ${VERIFICATION_STATUSES.join('|')} [--json]
                                          (npm run chain -- status)

status         how far each chain is: latest block, what is final of it, what is indexed; how fast the indexer goes and when
               it will have the rest, while it has not; the latest block of each node. A chain whose nodes do not answer is
               told of beside the others, with exit code 3
verify         reads blocks again and says what of them the history does not have, or has otherwise, and which logs claim
               more tokens than are taken; of all that is indexed, unless --from and --to say less
backfill       reads blocks again and publishes what the history does not have as the chain says it, and nothing else: it can
               be repeated. Blocks that are not indexed yet are the indexer's, and refused here. Says how far it is, how fast
               it goes and when it will end
refresh-token  asks the contract of a token again for name, symbol and decimals, and publishes them where they differ
verification   says what you have decided about a token; all else of it stays

Chains and their nodes are those of CHAIN_NODES, or of the stack that runs here.

Exit code: 0 done and all as expected, 1 something is missing, differs or is refused, or it ended early; 2 wrong words, 3 a
node or a store does not answer.`;

const text = { type: 'string' } as const;
const OPTIONS = {
  chain: text,
  from: text,
  to: text,
  'writer-group': text,
  address: text,
  status: text,
  json: { type: 'boolean', default: false },
} as const;

const WORDS: Readonly<Record<string, (job: ChainJob) => Promise<ExitCode>>> = {
  status: showStatus,
  verify,
  backfill,
  'refresh-token': refreshToken,
  verification: setVerification,
};

/** `chain`: how far chains are indexed, whether the history agrees with them, and what is known of tokens. */
export function createChainCommand(context: ChainContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const { values, words } = parseOptions(args, OPTIONS, 1);
    const word = choiceOf({ word: words[0] }, 'word', { choices: Object.keys(WORDS) });
    return WORDS[word]!({ context, terminal, values });
  };
  return { name: 'chain', summary: 'how far chains are indexed; compare the history with them', help: HELP, run };
}
