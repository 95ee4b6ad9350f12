import type { ChainLog } from '../node.ts';
import { AbiFault, AbiReader, eventTopicOf, toAddress, toUint } from './abi-reader.ts';
import { EMPTY_READING, type LogReading, read, unread } from './log-reading.ts';

export interface BridgeSettings {
  readonly contract: string;
  /** Such as `Deposited(address indexed token, address indexed who, uint256 amount)`, without `token` if set below. */
  readonly deposit?: string;
  readonly withdrawal?: string;
  readonly token?: string;
}

export interface BridgeEvent {
  readonly type: 'deposit' | 'withdrawal';
  readonly contract: string;
  readonly topic: string;
  readonly token: string | null;
  readonly parameters: readonly Parameter[];
}

interface Parameter {
  readonly name: string;
  readonly isIndexed: boolean;
}

const EVENT = /^([A-Za-z_]\w*)\((.*)\)$/;
const PARAMETER = /^(address|bool|bytes32|u?int\d{0,3})( indexed)?(?: (\w+))?$/;
const WORD = 32;
/** A log has at most four topics; the first is the hash of the event signature. */
const INDEXED_MAX = 3;

/** @throws RangeError */
function parseEvent(text: string): Pick<BridgeEvent, 'topic' | 'parameters'> {
  const [, name, list = ''] = EVENT.exec(text.trim()) ?? [];
  const parsed = list.split(',').map((part) => PARAMETER.exec(part.trim()));
  if (name === undefined || parsed.includes(null))
    throw new RangeError('a bridge event must be Name(type [indexed] [name], …), with types of 32 bytes');
  const types = parsed.map((each) => each![1]!.replace(/^(u?int)$/, '$1256'));
  const parameters = parsed.map((each) => ({ name: each![3] ?? '', isIndexed: each![2] !== undefined }));
  if (parameters.filter(({ isIndexed }) => isIndexed).length > INDEXED_MAX)
    throw new RangeError('a bridge event can have at most three indexed parameters');
  return { topic: eventTopicOf(`${name}(${types.join(',')})`), parameters };
}

/** @throws RangeError */
export function parseBridge(bridge: BridgeSettings): BridgeEvent[] {
  const events = (['deposit', 'withdrawal'] as const).flatMap((type) => {
    const text = bridge[type];
    if (text === undefined) return [];
    const event = parseEvent(text);
    const names = event.parameters.map(({ name }) => name);
    const required = bridge.token === undefined ? ['who', 'amount', 'token'] : ['who', 'amount'];
    const missing = required.filter((name) => !names.includes(name));
    if (missing.length > 0) throw new RangeError(`the ${type} event of a bridge lacks ${missing.join(' and ')}`);
    return [{ type, contract: bridge.contract.toLowerCase(), token: bridge.token?.toLowerCase() ?? null, ...event }];
  });
  if (events.length === 0) throw new RangeError('a bridge needs a deposit or a withdrawal event');
  return events;
}

export function readBridge({ topics, data }: ChainLog, event: BridgeEvent): LogReading {
  if (topics[0] !== event.topic) return EMPTY_READING;
  try {
    const values = new Map<string, string>();
    const reader = new AbiReader(data);
    let [topic, at] = [1, 0];
    for (const { name, isIndexed } of event.parameters) {
      const value = isIndexed ? topics[topic++] : reader.text(at);
      if (!isIndexed) at += WORD;
      if (value === undefined) return unread('malformed');
      values.set(name, value);
    }
    const [who, amount] = [toAddress(values.get('who')!), String(toUint(values.get('amount')!))];
    const contractAddress = event.token ?? toAddress(values.get('token')!);
    const asset = { contract_type: 'ERC20', contract_address: contractAddress };
    const side = event.type === 'deposit' ? { to: who } : { from: who };
    return read([{ type: event.type, details: { ...side, amount, asset }, contractAddress }]);
  } catch (fault) {
    if (fault instanceof AbiFault) return unread('malformed');
    throw fault;
  }
}
