import { type ChainNode, describeTokens, NodeFault, toTokenRow } from '@playline/chain';
import { ADDRESS_EXPECTED, parseAddress, type TokenRecord, VERIFICATION_STATUSES } from '@playline/contracts';
import { choiceOf, EXIT, type ExitCode, textOf, UsageError } from '../command.ts';
import { type ChainJob, chainOf, nodesOf } from './chain-job.ts';
import { askNodes } from './read-ranges.ts';
import { type ChangedToken, changeToken, type TokenName } from './token-log.ts';

function tokenOf(job: ChainJob): TokenName {
  const { name: chain } = chainOf(job);
  const contract = parseAddress(textOf(job.values, 'address') ?? '');
  if (contract === null) throw new UsageError(`--address: expected ${ADDRESS_EXPECTED}`);
  return { chain, contract };
}

/** Sets the verification status of a token. */
export async function setVerification(job: ChainJob): Promise<ExitCode> {
  const token = tokenOf(job);
  const verificationStatus = choiceOf(job.values, 'status', { choices: VERIFICATION_STATUSES });
  return tell(job, await changeToken(job.context, token, (standing) => ({ ...standing, verificationStatus })));
}

/** Reads name, symbol and decimals of a token from its contract again. */
export async function refreshToken(job: ChainJob): Promise<ExitCode> {
  const token = tokenOf(job);
  const nodes = nodesOf(job, chainOf(job));
  const changed = await changeToken(job.context, token, async (standing) => {
    const [described] = (await askNodes(nodes, (node) => describeOne(node, token))) ?? [];
    const { name = null, symbol = null, decimals = null } = described ?? {};
    // The values in the history are better than none.
    if (name === null && symbol === null && decimals === null)
      throw new Error('the contract says neither name nor symbol nor decimals: nothing was published');
    return { ...standing, name, symbol, decimals };
  });
  return tell(job, changed);
}

/** @throws NodeFault when the node does not answer all calls */
async function describeOne(node: ChainNode, { chain, contract }: TokenName): Promise<TokenRecord[]> {
  const described = await describeTokens(node, chain, [contract]);
  return described.map((each) => {
    if (each instanceof NodeFault) throw each;
    return each;
  });
}

const NOWHERE = { updatedAt: 0, partition: 0, offset: 0, loggedAtMs: 0 };

function tell({ terminal, values }: ChainJob, { token, isPublished }: ChangedToken): ExitCode {
  const { chain, contractAddress, name, symbol, decimals, verificationStatus } = toTokenRow(token, NOWHERE);
  const shown = { chain, contract_address: contractAddress, name, symbol, decimals };
  terminal.result(
    values.json === true
      ? JSON.stringify({ ...shown, verification_status: verificationStatus, published: isPublished })
      : `${chain} ${contractAddress}: ${toWords({ name, symbol, decimals })}, ${verificationStatus}: ` +
          `${isPublished ? 'published' : 'it was so already, nothing was published'}`,
  );
  return EXIT.ok;
}

const toWords = ({ name, symbol, decimals }: Pick<TokenRecord, 'name' | 'symbol' | 'decimals'>) =>
  `${name ?? 'no name'} (${symbol ?? 'no symbol'}), ${decimals ?? 'no'} decimals`;
