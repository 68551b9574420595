import { Link } from 'react-router'
import { Page } from '../parts/basics'
import * as say from '../strings'

export default function Missing() {
  return (
    <Page title={say.notFound}>
      <p>
        <Link to="/">{say.home}</Link>
      </p>
    </Page>
  )
}
