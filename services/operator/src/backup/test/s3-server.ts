/** A server with the API of S3, which checks signatures and permissions. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { DeleteObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { CHECKOUT } from '@playline/infra/local';

const PACKAGES = ['moto==5.2.5', 'flask==3.1.3', 'flask-cors==6.0.5', 'PyYAML==6.0.4'];
/** The first four requests need no login. */
const SCRIPT = `
import json, logging, os, sys
logging.getLogger('werkzeug').setLevel(logging.ERROR)
os.environ.update(INITIAL_NO_AUTH_ACTION_COUNT='4', AWS_ACCESS_KEY_ID='setup', AWS_SECRET_ACCESS_KEY='setup')
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
url = 'http://%s:%d' % server.get_host_and_port()
open_client = lambda name: boto3.client(name, endpoint_url=url, region_name='us-east-1')
iam = open_client('iam')
iam.create_user(UserName='backup')
key = iam.create_access_key(UserName='backup')['AccessKey']
allowed = {'Effect': 'Allow', 'Action': 's3:*', 'Resource': '*'}
policy = json.dumps({'Version': '2012-10-17', 'Statement': [allowed]})
iam.put_user_policy(UserName='backup', PolicyName='backup', PolicyDocument=policy)
open_client('s3').create_bucket(Bucket='backups')
print(json.dumps({'url': url, 'id': key['AccessKeyId'], 'secret': key['SecretAccessKey']}), flush=True)
sys.stdin.read()
`;

export async function openS3Server() {
  const folder = join(CHECKOUT, '.playline', 's3-server');
  mkdirSync(folder, { recursive: true });
  const run = promisify(execFile);
  await run('python3', ['-m', 'venv', folder]);
  await run(join(folder, 'bin/pip'), ['install', '--quiet', ...PACKAGES]);
  const child = spawn(join(folder, 'bin/python'), ['-c', SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  const { url, id, secret } = JSON.parse(line) as Record<string, string>;
  const environment = {
    AWS_ENDPOINT_URL_S3: url!,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: id!,
    AWS_SECRET_ACCESS_KEY: secret!,
  };
  const credentials = { accessKeyId: id!, secretAccessKey: secret! };
  const client = new S3Client({ endpoint: url!, region: 'us-east-1', forcePathStyle: true, credentials });
  const bucket = { Bucket: 'backups' };
  return {
    environment,
    location: 's3://backups',
    async listKeys(Prefix: string): Promise<string[]> {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ ...bucket, Prefix }));
      return Contents.map(({ Key = '' }) => Key);
    },
    putKey: async (Key: string, Body: string) =>
      void (await client.send(new PutObjectCommand({ ...bucket, Key, Body }))),
    deleteKey: async (Key: string) => void (await client.send(new DeleteObjectCommand({ ...bucket, Key }))),
    async close(): Promise<void> {
      client.destroy();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}
