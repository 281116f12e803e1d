from ._database import PostgresqlDatabase as PostgresqlDatabase
