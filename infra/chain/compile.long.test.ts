import { type Abi, parseAbi, toEventSignature, toFunctionSignature } from 'viem';
import { expect, it } from 'vitest';
import { compileAll, findDifferences } from './compile.ts';
import { type ContractName, readContract, SIGNATURES } from './contracts.ts';

/** Formats the properties of each item that affect the encoding of a call or a log. */
function toSignatures(abi: Abi): string[] {
  return abi.map((item) => {
    if (item.type === 'constructor') return `constructor(${item.inputs.map(({ type }) => type).join()})`;
    if (item.type === 'event')
      return `event ${toEventSignature(item)} ${item.inputs.map(({ indexed }) => indexed === true)}`;
    if (item.type === 'error')
      return `error ${toFunctionSignature({ ...item, type: 'function', outputs: [], stateMutability: 'view' })}`;
    if (item.type !== 'function') return item.type;
    return `${toFunctionSignature(item)} ${item.stateMutability} ${item.outputs.map(({ type }) => type)}`;
  });
}

it('the committed compiled contracts are byte-identical to the compiler output', () => {
  expect(findDifferences(compileAll())).toEqual([]);
});

it.each(Object.keys(SIGNATURES) as ContractName[])('the signatures of %s match its compiled ABI', (name) => {
  const compiled = toSignatures(readContract(name).abi as Abi);
  expect(compiled).toEqual(
    expect.arrayContaining(toSignatures(parseAbi(SIGNATURES[name] as readonly string[]) as Abi)),
  );
});
